import type { Page } from "@playwright/test";
import { expect, Service, test } from "./service.ts";

const TOKEN = "a-token-for-tests-0123456789abcdef";

const locked = test.extend({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the dependencies of a fixture from this pattern.
  service: async ({}, use) => {
    const service = await Service.start({ SLUICEGATE_ADMIN_TOKEN: TOKEN, SLUICEGATE_ADMIN_FAILURES_PER_MINUTE: "3" });
    await use(service);
    await service.stop();
  },
});

async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel("Token", { exact: true }).fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
}

test("without a token in the settings, no sign-in is needed", async ({ page }) => {
  await page.goto("/#/explain");
  await expect(page.getByText("Would be allowed")).toBeVisible();
  await expect(page.getByLabel("Token", { exact: true })).toBeHidden();
  await expect(page.getByRole("button", { name: "Sign out" })).toBeHidden();
});

locked("every view but the playground asks for the token", async ({ page }) => {
  for (const view of ["live", "rules", "explain", "violations", "history", "callers"]) {
    await page.goto(`/#/${view}`);
    await expect(page.getByLabel("Token", { exact: true })).toBeVisible();
  }
  await page.getByRole("link", { name: "Go to the playground" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Playground" })).toBeVisible();
  await expect(page.getByLabel("Token", { exact: true })).toBeHidden();
});

locked("signing in leads back to the view, until signing out", async ({ page }) => {
  await page.goto("/#/explain?user_id=42&plan=free");
  await signIn(page, ` ${TOKEN} `);
  await expect(page.getByLabel("User id")).toHaveValue("42");
  await expect(page.getByText("Would be allowed")).toBeVisible();
  await expect(page.getByRole("heading", { level: 1 })).toBeFocused();
  await page.reload();
  await expect(page.getByText("Would be allowed")).toBeVisible();
  expect(page.url()).not.toContain(TOKEN);
  expect(await page.evaluate(() => Object.values(localStorage).join())).not.toContain(TOKEN);
  await page.getByRole("button", { name: "Sign out" }).click();
  await expect(page.getByLabel("Token", { exact: true })).toBeVisible();
  await expect(page.getByText("Would be allowed")).toHaveCount(0);
  expect(await page.evaluate(() => Object.values(sessionStorage).join())).not.toContain(TOKEN);
});

locked("a wrong token is reported at the field, and too many with the time to retry", async ({ page }) => {
  await page.goto("/#/violations");
  await signIn(page, "wrong");
  const field = page.getByLabel("Token", { exact: true });
  await expect(field).toHaveAccessibleDescription("this token is not known");
  await expect(field).toHaveAttribute("aria-invalid", "true");
  await expect(field).toHaveValue("wrong");
  await expect(async () => {
    await signIn(page, `wrong-${Math.random()}`);
    await expect(field).toHaveAccessibleDescription(/too many wrong tokens .* try again in \d+ s/, { timeout: 1000 });
  }).toPass();
});

locked("an invalid token is reported and not sent", async ({ page }) => {
  await page.goto("/#/violations");
  const field = page.getByLabel("Token", { exact: true });
  await expect(field).toBeVisible();
  const sent: string[] = [];
  page.on("request", (request) => sent.push(request.url()));
  for (const text of ["t\u00f6ken", "\u2013token", "two words"]) {
    await signIn(page, text);
    await expect(field).toHaveAccessibleDescription(/is not a token/);
    await expect(field).toBeFocused();
    await expect(field).toHaveValue(text);
    await field.fill("");
    await expect(field).not.toHaveAccessibleDescription(/is not a token/);
  }
  expect(sent.filter((url) => url.includes("/v1/explain"))).toEqual([]);
  await signIn(page, TOKEN);
  await expect(page.getByRole("heading", { level: 1, name: "Violations" })).toBeVisible();
});

locked("a service that is not ready can be tried again", async ({ page }) => {
  await page.goto("/#/violations");
  await expect(page.getByLabel("Token", { exact: true })).toBeVisible();
  const detail = "tokens are not loaded yet: try again";
  const body = JSON.stringify({ type: "about:blank", title: "Service Unavailable", status: 503, detail });
  await page.route("**/v1/explain", (route) => route.fulfill({ status: 503, body }), { times: 1 });
  await signIn(page, TOKEN);
  await expect(page.getByLabel("Token", { exact: true })).toHaveAccessibleDescription(detail);
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Violations" })).toBeVisible();
});

locked("a revoked token asks to sign in again, and nothing typed is lost", async ({ page }) => {
  await page.goto("/#/violations");
  await signIn(page, TOKEN);
  await page.getByLabel("User id").fill("typed, and not searched for");
  const body = JSON.stringify({
    type: "about:blank",
    title: "Unauthorized",
    status: 401,
    detail: "this token is not known",
  });
  await page.route("**/v1/violations/top?*", (route) => route.fulfill({ status: 401, body }));
  await page.route("**/v1/violations?*", (route) => route.fulfill({ status: 401, body }));
  await page.getByRole("button", { name: "Export CSV" }).click();
  await expect(page.getByRole("heading", { name: "Sign in again" })).toBeVisible();
  await page.unroute("**/v1/violations?*");
  await page.unroute("**/v1/violations/top?*");
  await signIn(page, TOKEN);
  await expect(page.getByLabel("User id")).toHaveValue("typed, and not searched for");
});

locked("the sign-in form is above an open dialog", async ({ page }) => {
  await page.goto("/#/live?rule=5&subject=203.0.113.9");
  await expect(page.getByLabel("Token", { exact: true })).toBeFocused();
  await signIn(page, TOKEN);
  await expect(page.getByRole("dialog")).toContainText("203.0.113.9");
  await expect(page.getByLabel("Token", { exact: true })).toBeHidden();
});

test("a read-only token sees everything, and forbidden actions are explained", async ({ page, service }) => {
  const token = service.run("tokens", "create", "reader", "--role", "read").trim();
  await page.goto("/#/explain?user_id=42");
  await signIn(page, token);
  await expect(page.getByText("Would be allowed")).toBeVisible();
  await page.getByRole("navigation").getByRole("link", { name: "Violations" }).click();
  await expect(page.getByText("No violations yet.")).toBeVisible();
  await page.goto("/#/live?rule=7&subject=203.0.113.9");
  await page.getByRole("dialog").getByRole("button", { name: "Reset" }).click();
  await expect(page.getByRole("dialog").getByText(/may not|admin/)).toBeVisible();
});
