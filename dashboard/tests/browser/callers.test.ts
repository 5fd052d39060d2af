import type { Page } from "@playwright/test";
import { expect, type Service, test } from "./service.ts";

interface Caller {
  readonly name: string;
  readonly rights: readonly string[];
  readonly namespace: string | null;
  readonly expires_at: string | null;
}

const row = (page: Page, name: string) => page.getByRole("row").filter({ hasText: name });
const dialog = (page: Page) => page.getByRole("dialog");

async function listCallers(service: Service): Promise<readonly Caller[]> {
  return (await service.call<{ callers: Caller[] }>("GET", "/v1/callers")).callers;
}

test("a caller is created, and its token is shown once", async ({ page, service }) => {
  await page.goto("/#/callers");
  await expect(page.getByRole("heading", { name: "No callers" })).toBeVisible();
  await page.getByRole("button", { name: "New caller" }).click();
  await expect(dialog(page)).toContainText("This is the first caller");
  // Errors are at their fields.
  const name = dialog(page).getByLabel("Name", { exact: true });
  await name.fill("check out");
  await dialog(page).getByRole("button", { name: "Create caller" }).click();
  await expect(name).toHaveAccessibleDescription(/letters, digits/);
  await expect(name).toBeFocused();
  await name.fill("checkout");
  await dialog(page)
    .getByRole("checkbox", { name: /^check / })
    .uncheck();
  await dialog(page).getByRole("button", { name: "Create caller" }).click();
  await expect(dialog(page).getByRole("group", { name: "It may" })).toHaveAccessibleDescription(/at least one/);
  await dialog(page)
    .getByRole("checkbox", { name: /^check / })
    .check();
  await dialog(page)
    .getByRole("checkbox", { name: /^take / })
    .check();
  await dialog(page).getByLabel("Namespace").fill("team-a");
  await dialog(page).getByLabel("Expires", { exact: true }).selectOption("in");
  await dialog(page).getByLabel("Expires in").fill("90 days");
  await dialog(page).getByLabel("Why").fill("café opens");
  const sent = page.waitForRequest((request) => request.method() === "POST" && !request.url().includes("dry_run"));
  await dialog(page).getByRole("button", { name: "Create caller" }).click();
  const reason = (await sent).headers()["x-sluicegate-reason"] ?? "";
  expect([reason, Buffer.from(reason, "latin1").toString()]).toContain("café opens");

  const panel = page.getByRole("region", { name: "Token of checkout" });
  await expect(panel).toContainText("it is not shown again");
  await expect(panel.getByRole("heading")).toBeFocused();
  const token = (await panel.locator("code.key").innerText()).trim();
  expect(token).toMatch(/^sg_/);
  await expect(row(page, "checkout")).toContainText(/check\s*take.*team-a.*in 89 d|in 90 d/s);
  const asked = await service.request("POST", "/v1/check", { user_id: "1" }, { authorization: `Bearer ${token}` });
  expect(asked.status).toBe(200);

  // It is gone with the view, and nowhere else.
  await page.getByRole("navigation").getByRole("link", { name: "Rules" }).click();
  await page.getByRole("navigation").getByRole("link", { name: "Callers" }).click();
  await expect(row(page, "checkout")).toBeVisible();
  await expect(panel).toHaveCount(0);
  expect(await page.content()).not.toContain(token);
  expect(await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]))).not.toContain(token);
  expect(page.url()).not.toContain(token);
});

test("a caller is changed field by field", async ({ page, service }) => {
  await service.call("POST", "/v1/callers", { name: "batch", rights: ["check"], namespace: "team-b" });
  await page.goto("/#/callers");
  await page.getByRole("button", { name: "Change batch" }).click();
  await dialog(page)
    .getByRole("checkbox", { name: /^refund / })
    .check();
  await dialog(page).getByLabel("Namespace").fill("");
  await dialog(page).getByLabel("Expires", { exact: true }).selectOption("in");
  await dialog(page).getByLabel("Expires in").fill("yesterday");
  await dialog(page).getByRole("button", { name: "Save" }).click();
  await expect(dialog(page).getByLabel("Expires in")).toHaveAttribute("aria-invalid", "true");
  await dialog(page).getByLabel("Expires in").fill("2 days");
  await dialog(page).getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("Caller batch changed.")).toBeVisible();
  await expect(row(page, "batch")).toContainText("refund");
  await expect(page.getByRole("button", { name: "Change batch" })).toBeFocused();
  expect(await listCallers(service)).toMatchObject([{ rights: ["check", "refund"], namespace: null }]);
});

test("a caller is revoked after a confirmation that names the effect", async ({ page, service }) => {
  await service.call("POST", "/v1/callers", { name: "old", rights: ["check"] });
  await page.goto("/#/callers");
  await page.getByRole("button", { name: "Revoke old" }).click();
  await expect(dialog(page)).toContainText("All its requests will be refused");
  await expect(dialog(page)).toContainText("It is the last caller");
  await page.keyboard.press("Escape");
  await expect(page.getByRole("button", { name: "Revoke old" })).toBeFocused();
  await page.getByRole("button", { name: "Revoke old" }).click();
  await dialog(page).getByLabel("Why").fill("replaced");
  await dialog(page).getByRole("button", { name: "Revoke caller" }).click();
  await expect(page.getByRole("heading", { name: "No callers" })).toBeVisible();
  await expect(page.getByRole("heading", { level: 1 })).toBeFocused();
  expect(await listCallers(service)).toEqual([]);
});

test("a read-only token sees the list without the actions", async ({ page, service }) => {
  await service.call("POST", "/v1/callers", { name: "checkout", rights: ["check", "authorize"] });
  const token = service.run("tokens", "create", "reader", "--role", "read").trim();
  await expect.poll(async () => (await service.request("GET", "/v1/callers")).status).toBe(401);
  await page.goto("/#/callers");
  await page.getByLabel("Token", { exact: true }).fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(row(page, "checkout")).toContainText("authorize");
  await expect(page.getByText("Your token has the role read")).toBeVisible();
  await expect(page.getByRole("main").getByRole("button")).toHaveCount(0);
});
