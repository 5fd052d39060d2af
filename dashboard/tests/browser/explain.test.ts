import type { Page } from "@playwright/test";
import { expect, type Service, test } from "./service.ts";

/** Creates a rule whose one token refills in an hour, longer than any test runs. */
async function makeTightRule(service: Service, more: Record<string, unknown> = {}): Promise<number> {
  const rule = { key_pattern: "tight:{user_id}", tokens: 1, period: "1 hour", burst_capacity: 1, ...more };
  return (await service.call<{ rule_id: number }>("POST", "/v1/rules", rule)).rule_id;
}

function tier(page: Page, id: number) {
  return page
    .getByRole("region", { name: /appl(y|ies)$/ })
    .first()
    .getByRole("listitem")
    .filter({ hasText: `Rule ${id} ` });
}

test("typing a request shows which rules apply, and why others do not", async ({ page }) => {
  await page.goto("/#/explain");
  await page.getByLabel("IP address", { exact: true }).fill("203.0.113.9");
  await page.getByLabel("Endpoint", { exact: true }).fill("/login");
  await expect(tier(page, 5)).toContainText("login:203.0.113.9");
  await expect(tier(page, 5)).toContainText("5 of 5");
  await expect(tier(page, 5)).toContainText("would grant");
  await expect(page.getByText("Would be allowed")).toBeVisible();
  const others = page.getByRole("region", { name: "rules do not apply" });
  await expect(others.getByRole("listitem").filter({ hasText: "payment:{user_id}" })).toContainText(
    "/login does not match",
  );
  await expect(others.getByRole("listitem").filter({ hasText: "Rule 2 " })).toContainText("is for plan pro");
});

test("an empty form shows no verdict", async ({ page }) => {
  await page.goto("/#/explain");
  await expect(page.getByText("Enter a request", { exact: true })).toBeVisible();
  await expect(page.getByText("Would be allowed", { exact: true })).toHaveCount(0);
  await expect(page.getByText("A denial is in the body, with status 200")).toBeVisible();
  await page.getByLabel("User id").fill("42");
  await expect(page.getByText("Would be allowed")).toBeVisible();
});

test("the request is in the address, and comes back from it", async ({ page }) => {
  await page.goto("/#/explain?user_id=42&plan=free&cost=3&attr.tenant=acme");
  await expect(page.getByLabel("User id")).toHaveValue("42");
  await expect(page.getByLabel("Cost")).toHaveValue("3");
  await expect(page.getByLabel("Value of attribute 1")).toHaveValue("acme");
  await page.getByLabel("Plan").fill("pro");
  await expect(page).toHaveURL(/plan=pro/);
  await page.reload();
  await expect(page.getByLabel("Plan")).toHaveValue("pro");
  await expect(tier(page, 2)).toContainText("500 of 500");
  await page.getByRole("link", { name: "Clear" }).click();
  await expect(page.getByLabel("User id")).toHaveValue("");
});

test("sending a request spends tokens and shows the raw answer", async ({ page, service }) => {
  const id = await makeTightRule(service);
  await page.goto("/#/explain?user_id=42");
  await expect(tier(page, id)).toContainText("1 of 1");
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await expect(page.getByRole("region", { name: "Raw answer" })).toContainText('"allowed": true');
  await expect(tier(page, id)).toContainText("0 of 1");
  await expect(page.getByText("Would be denied")).toBeVisible();
  await expect(page.getByText(/try again in 59 min/)).toBeVisible();
  await page.getByRole("button", { name: "Send 10 times" }).click();
  await expect(page.getByRole("button", { name: /^Answer \d+: denied$/ })).toHaveCount(10);
  const exact = page.getByRole("region", { name: "Raw answer" });
  await expect(exact).toContainText("HTTP 200");
  await expect(exact).toContainText("content-type: application/json");
  await expect(exact).toContainText(`"rule_id": ${id}`);
  await page.getByRole("button", { name: "Answer 1: allowed" }).click();
  await expect(exact).toContainText('"allowed": true');
});

test("buckets are polled", async ({ page, service }) => {
  const id = await makeTightRule(service);
  await page.goto("/#/explain?user_id=42");
  await expect(tier(page, id)).toContainText("1 of 1");
  await service.call("POST", "/v1/check", { user_id: "42" });
  await expect(tier(page, id)).toContainText("0 of 1");
  await service.call("POST", `/v1/buckets/${id}/42/reset`);
  await expect(tier(page, id)).toContainText("1 of 1");
});

test("a rule and a bucket lead to where they can be changed", async ({ page, service }) => {
  const id = await makeTightRule(service);
  await page.goto("/#/explain?user_id=a%20b%2Fc");
  await expect(tier(page, id).getByRole("link", { name: "tight:{user_id}" })).toHaveAttribute(
    "href",
    `#/rules?rule=${id}`,
  );
  await expect(tier(page, id).getByRole("link", { name: "tight:a b/c" })).toHaveAttribute(
    "href",
    `#/live?rule=${id}&subject=a+b%2Fc`,
  );
});

test("an error is shown at its field, and nothing typed is lost", async ({ page }) => {
  await page.goto("/#/explain?user_id=42");
  const ip = page.getByLabel("IP address", { exact: true });
  await ip.fill("nonsense");
  await expect(ip).toHaveAttribute("aria-invalid", "true");
  await expect(ip).toHaveAccessibleDescription("is not an address");
  await expect(page.getByRole("button", { name: "Send", exact: true })).toBeDisabled();
  await ip.fill("203.0.113.9");
  await expect(ip).toHaveAttribute("aria-invalid", "false");
  const cost = page.getByLabel("Cost");
  await cost.fill("a few");
  await expect(cost).toHaveAccessibleDescription("is not a whole number");
  await expect(page.getByLabel("User id")).toHaveValue("42");
});

test("rows of other attributes can be added and removed", async ({ page, service }) => {
  const id = await makeTightRule(service, { key_pattern: "tenant:{tenant}" });
  await page.goto("/#/explain");
  const add = page.getByRole("button", { name: "Add attribute" });
  await add.click();
  await page.getByLabel("Name of attribute 1").fill("tenant");
  await page.getByLabel("Value of attribute 1").fill("acme");
  await expect(tier(page, id)).toContainText("tenant:acme");
  await add.click();
  await page.getByLabel("Name of attribute 2").fill("ip");
  await page.getByLabel("Value of attribute 2").fill("x");
  await expect(page.getByText("has a field of its own")).toBeVisible();
  await page.getByRole("button", { name: "Remove attribute 2" }).click();
  await expect(add).toBeFocused();
  await expect(tier(page, id)).toContainText("tenant:acme");
});

test("overrides, shadow mode and never are named", async ({ page, service }) => {
  const id = await makeTightRule(service);
  const shadow = await makeTightRule(service, { key_pattern: "quiet:{user_id}", mode: "shadow" });
  await page.goto("/#/explain?user_id=42&cost=2");
  await expect(page.getByText("the cost of 2 is above the limit of 1")).toBeVisible();
  await expect(tier(page, shadow)).toContainText("would deny (shadow)");
  await expect(tier(page, shadow)).toContainText("never");
  await service.call("POST", "/v1/overrides", { rule_id: id, subject: "42", blocked: true });
  await expect(page.getByText("an override blocks the subject")).toBeVisible();
  await expect(tier(page, id)).toContainText("override: blocked");
});

test("many rules that do not apply are folded", async ({ page, service }) => {
  for (let index = 0; index < 15; index += 1) await makeTightRule(service, { key_pattern: `r${index}:{nothing}` });
  await page.goto("/#/explain");
  await expect(page.getByRole("heading", { name: "23 rules do not apply" })).toBeVisible();
  await expect(page.getByText("the request has no nothing").first()).toBeHidden();
  await page.getByText("Reasons").click();
  await expect(page.getByText("the request has no nothing").first()).toBeVisible();
});

test("the same request can be copied for a shell", async ({ page, context, service }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.goto(`/#/explain?user_id=${encodeURIComponent("o'hara $(id)")}`);
  await page.getByRole("button", { name: "Copy as curl" }).click();
  await expect(page.getByText("Copied.")).toBeVisible();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(
    `curl -sS -i -X POST ${service.url}/v1/check -H 'content-type: application/json' --data-raw '{"user_id":"o'\\''hara $(id)"}'`,
  );
});

test("a service that does not answer is reported and polled again", async ({ page }) => {
  await page.goto("/#/explain?user_id=42");
  await expect(page.getByText("Would be allowed")).toBeVisible();
  await page.route("**/v1/explain", (route) => route.abort());
  await expect(page.getByText("the service does not answer")).toBeVisible();
  await expect(page.getByLabel("User id")).toHaveValue("42");
  await page.unroute("**/v1/explain");
  // The polling interval grows to fifteen seconds at most.
  await expect(page.getByText("the service does not answer")).toBeHidden({ timeout: 20_000 });
});
