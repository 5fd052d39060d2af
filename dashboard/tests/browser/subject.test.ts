import type { Locator, Page } from "@playwright/test";
import { expect, Service, test } from "./service.ts";

const SUBJECT = "203.0.113.9";
const LOGIN = { ip: SUBJECT, endpoint: "/login" };

interface Verdict {
  readonly allowed: boolean;
  readonly remaining: number;
  readonly retry_after_ms: number | null;
}

/** Checks one login, which spends a token if it is allowed. */
function logIn(service: Service): Promise<Verdict> {
  return service.call<Verdict>("POST", "/v1/check", LOGIN);
}

/** Sends the logins that the rule allows, and three more. */
async function exhaust(service: Service): Promise<void> {
  await service.call(
    "POST",
    "/v1/check/batch",
    Array.from({ length: 8 }, () => LOGIN),
  );
}

async function openPanel(page: Page, rule: number, subject: string): Promise<Locator> {
  await page.goto(`/#/live?rule=${rule}&subject=${encodeURIComponent(subject)}`);
  const panel = page.getByRole("dialog");
  await expect(panel).toContainText(/tokens left/);
  return panel;
}

test("a subject is opened and closed by keyboard, and the focus returns", async ({ page, service }) => {
  await page.goto("/#/live");
  await expect(page.getByRole("heading", { name: "Top limited subjects" })).toBeVisible();
  await exhaust(service);
  const link = page.getByRole("region", { name: "Top limited subjects" }).getByRole("link", { name: SUBJECT });
  await link.focus();
  await page.keyboard.press("Enter");
  const panel = page.getByRole("dialog");
  await expect(panel).toContainText("0 of 5 tokens left");
  await expect(panel).toContainText("full in");
  await expect(page).toHaveURL(/#\/live\?rule=5&subject=203\.0\.113\.9$/);
  await page.keyboard.press("Escape");
  await expect(panel).toBeHidden();
  await expect(page).toHaveURL(/#\/live$/);
  await expect(link).toBeFocused();

  await page.keyboard.press("Enter");
  await expect(panel).toBeVisible();
  await page.goBack();
  await expect(panel).toBeHidden();
  await expect(link).toBeFocused();
});

test("Escape closes a form first, and then the panel", async ({ page }) => {
  const panel = await openPanel(page, 5, SUBJECT);
  await expect(page.getByRole("heading", { name: "Top limited subjects" })).toBeVisible();
  await panel.getByRole("button", { name: "Block…" }).click();
  await expect(panel.getByLabel("Expires in")).toBeFocused();
  await page.keyboard.press("Escape");
  await expect(panel.getByLabel("Expires in")).toBeHidden();
  await expect(panel.getByRole("button", { name: "Block…" })).toBeFocused();
  await page.keyboard.press("Escape");
  await expect(panel).toBeHidden();
  await expect(page.getByRole("heading", { name: "Top limited subjects" })).toBeFocused();
});

test("the panel shows buckets of all rules, violations and overrides", async ({ page, service }) => {
  await exhaust(service);
  await service.call("POST", "/v1/rules", { key_pattern: "api:{ip}:{endpoint}", tokens: 9, period: 60 });
  const panel = await openPanel(page, 5, SUBJECT);
  await expect(panel.getByRole("region", { name: "Bucket", exact: true })).toContainText("0 of 5 tokens left");
  const others = panel.getByRole("region", { name: "Buckets of other rules" });
  await expect(others.getByRole("listitem").filter({ hasText: "ip:{ip}" }).first()).toContainText("of 200");
  await expect(others.getByRole("listitem").filter({ hasText: "api:{ip}" })).toContainText("also by endpoint");
  const violations = panel.getByRole("region", { name: "Violations" });
  await expect(violations.getByRole("listitem").first()).toContainText("login:203.0.113.9");
  await expect(violations.getByRole("link", { name: "All violations of this bucket" })).toHaveAttribute(
    "href",
    "#/violations?bucket_key=login%3A203.0.113.9",
  );
  await expect(panel.getByRole("region", { name: "Overrides" })).toContainText("None");

  await others.getByRole("link", { name: "Open the bucket of rule 10" }).click();
  await expect(panel).toContainText("Enter endpoint to see the bucket");
  await panel.getByLabel("endpoint").fill("/login");
  await expect(panel).toContainText("9 of 9 tokens left");
});

test("a reset fills the bucket", async ({ page, service }) => {
  await exhaust(service);
  const panel = await openPanel(page, 5, SUBJECT);
  await panel.getByRole("button", { name: "Reset" }).click();
  await expect(panel.getByRole("status")).toContainText("The bucket was reset: 5 of 5 tokens.");
  await expect(panel.getByRole("region", { name: "Bucket", exact: true })).toContainText("5 of 5 tokens left");
  expect((await logIn(service)).allowed).toBe(true);
  await expect(panel.getByRole("region", { name: "Bucket", exact: true })).toContainText("4 of 5 tokens left");
});

test("a shared bucket is reset only after a confirmation", async ({ page, service }) => {
  await service.call("POST", "/v1/rules", { key_pattern: "batch", tokens: 1, period: "1 day", burst_capacity: 10 });
  await service.call("POST", "/v1/check", { cost: 4 });
  const panel = await openPanel(page, 10, "batch");
  const bucket = panel.getByRole("region", { name: "Bucket", exact: true });
  await panel.getByRole("button", { name: "Reset…" }).click();
  await expect(panel).toContainText("full again for all clients");
  await expect(panel.getByRole("button", { name: "Cancel" })).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(panel.getByRole("button", { name: "Reset…" })).toBeFocused();
  await expect(bucket).toContainText("6 of 10 tokens left");
  await panel.getByRole("button", { name: "Reset…" }).click();
  await panel.getByRole("button", { name: "Reset for all clients" }).click();
  await expect(panel.getByRole("status")).toContainText("The bucket was reset: 10 of 10 tokens.");
  await expect(bucket).toContainText("10 of 10 tokens left");
});

test("violations of a shared bucket are not attributed to the first client", async ({ page, service }) => {
  await service.call("POST", "/v1/rules", { key_pattern: "tenant:{tenant}", tokens: 1, period: "1 day" });
  await service.call("POST", "/v1/rules", { key_pattern: "own:{user_id}", tokens: 3, period: "1 day" });
  const request = (user_id: string) => ({ user_id, attributes: { tenant: "acme" } });
  await service.call("POST", "/v1/check/batch", ["spender", "innocent", "flooder", "flooder"].map(request));
  // Without the tenant, this user exceeds its own limit.
  await service.call(
    "POST",
    "/v1/check/batch",
    Array.from({ length: 5 }, () => ({ user_id: "flooder" })),
  );
  await expect(async () => {
    const { violations } = await service.call<{ violations: unknown[] }>("GET", "/v1/violations");
    expect(violations).toHaveLength(2);
  }).toPass();
  const panel = await openPanel(page, 11, "innocent");
  const its = panel.getByRole("region", { name: "Violations" });
  await expect(its).toContainText("None recorded");
  await page.goto("/#/live?rule=11&subject=flooder");
  await expect(its.getByRole("listitem")).toHaveCount(1);
  await expect(its.getByRole("listitem")).toContainText("own:flooder");
  await expect(its.getByRole("listitem").getByRole("link", { name: "own:flooder" })).toHaveAttribute(
    "href",
    "#/violations?bucket_key=own%3Aflooder",
  );
});

test("a grant adds tokens, and an error is shown at its field", async ({ page, service }) => {
  await exhaust(service);
  const panel = await openPanel(page, 5, SUBJECT);
  await panel.getByRole("button", { name: "Grant…" }).click();
  const tokens = panel.getByLabel("Tokens");
  await expect(tokens).toBeFocused();
  await tokens.fill("many");
  await panel.getByRole("button", { name: "Grant", exact: true }).click();
  await expect(tokens).toHaveAttribute("aria-invalid", "true");
  await expect(tokens).toHaveValue("many");
  await tokens.fill("3");
  await page.keyboard.press("Enter");
  await expect(panel.getByRole("status")).toContainText("Granted 3 tokens: 3 of 5 left.");
  await expect(panel.getByRole("button", { name: "Grant…" })).toBeFocused();
  expect((await logIn(service)).remaining).toBe(2);
});

test("an override is set, with what the service notes about it, and deleted", async ({ page, service }) => {
  const panel = await openPanel(page, 1, "42");
  await panel.getByRole("button", { name: "Override…" }).click();
  await expect(panel.getByLabel("Tokens")).toHaveValue("10");
  await panel.getByLabel("Tokens").fill("100");
  await panel.getByLabel("Per", { exact: true }).fill("1 fortnight");
  await panel.getByLabel("Burst").fill("700");
  await panel.getByLabel("Reason").fill("launch day");
  await panel.getByRole("button", { name: "Set override" }).click();
  await expect(panel.getByLabel("Per", { exact: true })).toHaveAttribute("aria-invalid", "true");
  await expect(panel).toContainText("not a unit of time");
  await expect(panel.getByLabel("Reason")).toHaveValue("launch day");
  await panel.getByLabel("Per", { exact: true }).fill("1s");
  await panel.getByRole("button", { name: "Set override" }).click();
  // The answer notes that the rule applies to one plan only.
  await expect(panel.getByRole("status")).toContainText("rule 1 is for plan free only");
  await expect(panel.getByRole("region", { name: "Bucket", exact: true })).toContainText("of 700 tokens left");
  const verdict = await service.call<{ limit: number }>("POST", "/v1/check", { user_id: "42", plan: "free" });
  expect(verdict.limit).toBe(700);

  const overrides = panel.getByRole("region", { name: "Overrides" });
  const row = overrides.getByRole("listitem");
  await expect(row).toContainText("burst 700, refilling 100 per second");
  await expect(row).toContainText("launch day");
  await row.getByRole("button", { name: "Delete…" }).click();
  await expect(row).toContainText("The quota of the rule will apply at once");
  await row.getByRole("button", { name: "Delete", exact: true }).click();
  await expect(overrides).toContainText("the quota of rule 1 applies again");
  await expect(overrides).toContainText("None");
  await expect(overrides.getByRole("heading")).toBeFocused();
  await expect(panel.getByRole("region", { name: "Bucket", exact: true })).toContainText("of 50 tokens left");
});

test("a block denies everything until it is lifted", async ({ page, service }) => {
  const panel = await openPanel(page, 5, SUBJECT);
  await panel.getByRole("button", { name: "Block…" }).click();
  await expect(panel).toContainText("will deny every request of this subject");
  expect((await logIn(service)).allowed).toBe(true);
  await panel.getByLabel("Expires in").fill("2 hours");
  await panel.getByRole("button", { name: "Block", exact: true }).click();
  await expect(
    panel.getByRole("status").filter({ hasText: "Blocked: this rule denies every request of the subject" }),
  ).toBeVisible();
  await expect(panel.getByRole("region", { name: "Bucket", exact: true })).toContainText("every request is denied");
  await expect(panel.getByRole("region", { name: "Bucket", exact: true })).not.toContainText("tokens left");
  // Pressing Enter again must not unblock.
  await expect(panel.getByRole("button", { name: "Unblock" })).toBeVisible();
  await expect(panel.locator(":focus")).toContainText("Blocked: this rule denies every request of the subject");
  expect(await logIn(service)).toMatchObject({ allowed: false, retry_after_ms: null });
  await panel.getByRole("button", { name: "Unblock" }).click();
  await expect(panel.getByRole("status").filter({ hasText: "Unblocked" })).toBeVisible();
  expect((await logIn(service)).allowed).toBe(true);
});

test("a subject can be made unlimited", async ({ page, service }) => {
  await exhaust(service);
  const panel = await openPanel(page, 5, SUBJECT);
  await panel.getByRole("button", { name: "Unlimited…" }).click();
  await panel.getByRole("button", { name: "Remove the limit" }).click();
  await expect(panel.getByRole("status").filter({ hasText: "no longer limits the subject" })).toBeVisible();
  expect((await logIn(service)).allowed).toBe(true);
});

test("a concurrent change of an override is not overwritten", async ({ page, service }) => {
  interface Override {
    readonly override_id: number;
  }
  const quota = { rule_id: 5, subject: SUBJECT, tokens: 7, period: 60 };
  const { override_id } = await service.call<Override>("POST", "/v1/overrides", quota);
  const panel = await openPanel(page, 5, SUBJECT);
  await expect(panel.getByRole("region", { name: "Overrides" })).toContainText("refilling 7 per minute");
  await panel.getByRole("button", { name: "Override…" }).click();
  await panel.getByLabel("Tokens").fill("20");
  await panel.getByLabel("Reason").fill("mine");
  await service.call("PUT", `/v1/overrides/${override_id}`, { tokens: 9, period: 60, reason: "theirs" });
  await panel.getByRole("button", { name: "Replace override" }).click();
  await expect(panel.getByRole("status")).toContainText(
    "The override was changed meanwhile: it is now burst 5, refilling 9 per minute",
  );
  await expect(panel.getByLabel("Reason")).toHaveValue("mine");
  await panel.getByRole("button", { name: "Replace override" }).click();
  await expect(panel.getByRole("region", { name: "Overrides" })).toContainText("refilling 20 per minute");
});

test("a first override that another user set meanwhile is not overwritten, and can be loaded", async ({
  page,
  service,
}) => {
  const panel = await openPanel(page, 5, SUBJECT);
  await panel.getByRole("button", { name: "Block…" }).click();
  await panel.getByLabel("Reason").fill("mine");
  const theirs = { rule_id: 5, subject: SUBJECT, tokens: 9, period: 60, reason: "theirs", expires_in: "2 hours" };
  await service.call("POST", "/v1/overrides", theirs);
  await panel.getByRole("button", { name: "Block", exact: true }).click();
  await expect(panel.getByRole("status")).toContainText(
    /The override was set meanwhile: it is now burst 5, refilling 9 per minute, until .* UTC, by local at .* UTC/,
  );
  await panel.getByRole("button", { name: "Load it" }).click();
  await expect(panel.getByLabel("Tokens")).toHaveValue("9");
  await expect(panel.getByLabel("Reason")).toHaveValue("theirs");
  await expect(panel.getByLabel("Expires in")).toHaveValue(/^(2 hours|1(19|18) minutes)$/);
  await panel.getByLabel("Tokens").fill("11");
  await panel.getByRole("button", { name: "Replace override" }).click();
  await expect(panel.getByRole("region", { name: "Overrides" })).toContainText("refilling 11 per minute");
});

test("blocking a shared bucket warns that all clients share it", async ({ page }) => {
  const panel = await openPanel(page, 8, "global");
  await expect(panel.getByRole("heading", { level: 2 })).toContainText("shared");
  await panel.getByRole("button", { name: "Block…" }).click();
  await expect(panel).toContainText("all clients, which share this bucket");
  await expect(panel.getByRole("button", { name: "Block all clients" })).toBeVisible();
  await panel.getByRole("button", { name: "Cancel" }).click();
  await expect(panel.getByRole("button", { name: "Block…" })).toBeFocused();
});

test("an unknown rule and an invalid subject are reported", async ({ page }) => {
  await page.goto("/#/live?rule=99&subject=x");
  await expect(page.getByRole("dialog").getByRole("alert")).toContainText("there is no such rule");
  await page.goto("/#/live?rule=5&subject=nobody");
  await expect(page.getByRole("dialog").getByRole("alert").first()).toContainText("is not an address");
});

test.describe("with a token that may only read", () => {
  test.use({ settings: { SLUICEGATE_ADMIN_TOKEN: "a-token-that-is-long-enough-for-tests" } });

  test("buckets are shown, and forbidden actions are explained", async ({ page, service }) => {
    const token = service.run("tokens", "create", "--role", "read", "looker").trim();
    await page.goto(`/#/live?rule=5&subject=${SUBJECT}`);
    await page.getByLabel("Token").fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
    const panel = page.getByRole("dialog");
    await expect(panel).toContainText("5 of 5 tokens left");
    await panel.getByRole("button", { name: "Reset" }).click();
    await expect(panel.getByRole("alert")).toContainText("your token is read-only");
    await panel.getByRole("button", { name: "Block…" }).click();
    await panel.getByLabel("Reason").fill("brute force");
    await panel.getByRole("button", { name: "Block", exact: true }).click();
    await expect(panel.getByRole("alert")).toContainText("your token is read-only");
    await expect(panel.getByLabel("Reason")).toHaveValue("brute force");
  });
});

const truncated = test.extend({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the dependencies of a fixture from this pattern.
  service: async ({}, use) => {
    const service = await Service.start({ SLUICEGATE_AUDIT_PRIVACY: "truncated" });
    await use(service);
    await service.stop();
  },
});

truncated("a truncated address offers no actions", async ({ page, service }) => {
  await page.goto("/#/live");
  await expect(page.getByRole("heading", { name: "Top limited subjects" })).toBeVisible();
  await exhaust(service);
  await page
    .getByRole("region", { name: "Top limited subjects" })
    .getByRole("link", { name: "203.0.113.0/24" })
    .click();
  const panel = page.getByRole("dialog");
  await expect(panel).toContainText("This is a pseudonym from the audit");
  await expect(panel).toContainText("login:{ip}");
  await expect(panel.getByRole("listitem").filter({ hasText: "login:203.0.113.0/24" })).toContainText(/UTC.*3 denied/s);
  await expect(panel.getByText("tokens left")).toHaveCount(0);
  for (const name of ["Reset", "Block…", "Delete…"]) await expect(panel.getByRole("button", { name })).toHaveCount(0);
});

test("rules that were not searched are mentioned", async ({ page, service }) => {
  const list = await service.call<object>("GET", "/v1/rules");
  await page.route("**/v1/rules?*", (route) => route.fulfill({ json: { ...list, next: "1000" } }));
  const panel = await openPanel(page, 5, SUBJECT);
  await expect(panel.getByRole("region", { name: "Buckets of other rules" })).toContainText(/Only the first \d+ rules/);
});
