/** The page's own requests where callers exist. */

import type { Page } from "@playwright/test";
import { expect, type Service, test } from "./service.ts";

/** Creates a caller, which makes the service refuse requests without one. */
async function requireCallers(service: Service): Promise<void> {
  await service.call("POST", "/v1/callers", { name: "checkout", rights: ["check", "take"] });
  await expect.poll(async () => (await service.request("POST", "/v1/check", {})).status).toBe(401);
}

async function signIn(page: Page, token: string): Promise<void> {
  await page.getByRole("button", { name: "Sign in…" }).click();
  await page.getByLabel("Token", { exact: true }).fill(token);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await expect(page.getByRole("dialog")).toHaveCount(0);
}

test("the playground explains a refusal, and works after signing in as an administrator", async ({ page, service }) => {
  await requireCallers(service);
  const sent: string[] = [];
  page.on("request", (request) => sent.push(request.url()));
  await page.goto("/");
  await expect(page.getByText("The service answers only callers that it knows")).toBeVisible();
  // The administration is open to this machine, and stays so.
  await page.getByRole("navigation").getByRole("link", { name: "Rules" }).click();
  await expect(page.getByRole("row").first()).toBeVisible();
  await page.getByRole("navigation").getByRole("link", { name: "Playground" }).click();
  await expect(page.getByRole("button", { name: "Sign in…" })).toBeVisible();
  expect(sent.filter((url) => url.includes("/v1/take")).length).toBeLessThan(6);

  const reader = service.run("tokens", "create", "reader", "--role", "read").trim();
  const admin = service.run("tokens", "create", "ops", "--role", "admin").trim();
  await expect.poll(async () => (await service.request("GET", "/v1/rules")).status).toBe(401);
  await signIn(page, reader);
  await expect(page.getByText("Your token has the role read")).toBeVisible();
  await signIn(page, admin);
  await expect(page.getByText("A request passes")).toBeVisible();
  await expect(page.getByRole("button", { name: "Sign in…" })).toHaveCount(0);
  await page.getByRole("button", { name: "Send one" }).first().click();
  await expect(page.getByTestId("status")).toContainText("200");
  await expect(page.getByText("Your token is not part of the command")).toBeVisible();
});

test("the test of a check explains a refusal", async ({ page, service }) => {
  await requireCallers(service);
  await page.goto("/#/explain?user_id=42");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await expect(page.getByRole("region", { name: "Raw answer" })).toContainText("HTTP 401");
  await expect(page.getByText("The service answers only callers that it knows")).toBeVisible();
  await expect(page.getByText("Would be allowed")).toBeVisible();
});
