import { readFile } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import type { Page } from "@playwright/test";
import { test as base, expect, Service } from "./service.ts";

/** A service whose audit writes any number of violations at once. */
const test = base.extend({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the dependencies of a fixture from this pattern.
  service: async ({}, use) => {
    const service = await Service.start({ SLUICEGATE_AUDIT_ROWS_PER_SECOND: "100000" });
    await use(service);
    await service.stop();
  },
});

interface Check {
  readonly user_id?: string;
  readonly ip?: string;
  readonly endpoint?: string;
  readonly method?: string;
}

/** Creates a rule that allows one request per user and hour. */
async function makeTightRule(service: Service, more: Record<string, unknown> = {}): Promise<number> {
  const rule = { key_pattern: "tight:{user_id}", tokens: 1, period: "1 hour", burst_capacity: 1, ...more };
  return (await service.call<{ rule_id: number }>("POST", "/v1/rules", rule)).rule_id;
}

/** The longest time that related denials take. */
const TOGETHER_MS = 3000;

/** Waits for the next minute near the end of one: denials in two minutes would be two violations. */
async function avoidEndOfMinute(): Promise<void> {
  const left = 60_000 - (Date.now() % 60_000);
  if (left < TOGETHER_MS) await setTimeout(left);
}

/** Sends every request `times` times and waits for `rows` violations. */
async function deny(service: Service, checks: readonly Check[], times: number, rows: number): Promise<void> {
  await avoidEndOfMinute();
  const all = checks.flatMap((check) => Array.from({ length: times }, () => check));
  for (let at = 0; at < all.length; at += 100) await service.call("POST", "/v1/check/batch", all.slice(at, at + 100));
  const count = async () => {
    const list = await service.call<{ violations: unknown[] }>("GET", "/v1/violations?limit=1000");
    return list.violations.length;
  };
  await expect.poll(count, { timeout: 15_000 }).toBeGreaterThanOrEqual(rows);
}

const ALICE = { user_id: "alice", ip: "203.0.113.9", endpoint: "/export", method: "POST" };
const BOB = { user_id: "bob", ip: "198.51.100.7", endpoint: "/report", method: "GET" };

/** A row by its element: on a phone it is a card and has no role of a row. */
function row(page: Page, text: string) {
  return page.locator(".violations-table tbody tr").filter({ hasText: text });
}

test("violations are listed with subject, request, time and rule", async ({ page, service }) => {
  const id = await makeTightRule(service);
  await deny(service, [ALICE, BOB], 4, 2);
  await page.goto("/#/violations");
  const alice = row(page, "tight:alice");
  await expect(alice).toContainText("3");
  await expect(alice).toContainText("203.0.113.9");
  await expect(alice).toContainText("POST /export");
  await expect(alice).toContainText("enforce");
  await expect(alice.getByRole("link", { name: "tight:{user_id}" })).toHaveAttribute("href", `#/rules?rule=${id}`);
  await expect(alice.getByRole("link", { name: "tight:alice" })).toHaveAttribute(
    "href",
    `#/live?rule=${id}&subject=alice`,
  );
  await expect(page.getByText("2 of all 2 violations")).toBeVisible();
});

test("a search is by subject, rule, endpoint and mode, and is in the address", async ({ page, service }) => {
  const id = await makeTightRule(service);
  const quiet = await makeTightRule(service, { key_pattern: "quiet:{ip}", mode: "shadow" });
  await deny(service, [ALICE, BOB], 3, 4);
  await page.goto("/#/violations");
  await expect(row(page, "tight")).toHaveCount(2);
  const search = page.getByRole("form", { name: "Search" });
  await search.getByLabel("User id").fill("alice");
  await search.getByRole("button", { name: "Search" }).click();
  await expect(page).toHaveURL(/user_id=alice/);
  await expect(row(page, "alice")).toHaveCount(2);
  await expect(row(page, "bob")).toHaveCount(0);
  await search.getByLabel("Mode").selectOption("shadow");
  await search.getByRole("button", { name: "Search" }).click();
  await expect(row(page, "quiet:203.0.113.9")).toHaveCount(1);
  await expect(row(page, "tight")).toHaveCount(0);
  await page.goBack();
  await expect(search.getByLabel("Mode")).toHaveValue("");
  await expect(row(page, "alice")).toHaveCount(2);
  await page.goto(`/#/violations?rule_id=${quiet}&endpoint=%2Freport`);
  await expect(search.getByLabel("Rule")).toHaveValue(String(quiet));
  await expect(row(page, "quiet:198.51.100.7")).toHaveCount(1);
  await expect(row(page, "203.0.113.9")).toHaveCount(0);
  await page.goto(`/#/violations?rule_id=${id}&bucket_key=tight%3Abob`);
  await expect(row(page, "bob")).toHaveCount(1);
});

test("a search is by time, counted back or in UTC", async ({ page, service }) => {
  await makeTightRule(service);
  await deny(service, [ALICE], 3, 1);
  await page.goto("/#/violations");
  const search = page.getByRole("form", { name: "Search" });
  await search.getByRole("button", { name: "Last 15 min" }).click();
  await expect(page).toHaveURL(/last=15m/);
  await expect(search.getByRole("button", { name: "Last 15 min" })).toHaveAttribute("aria-pressed", "true");
  await expect(row(page, "alice")).toHaveCount(1);
  await search.getByLabel("To (UTC)").fill("2020-01-01T00:00:00");
  await search.getByRole("button", { name: "Search" }).click();
  await expect(page).toHaveURL(/to=2020-01-01T00%3A00%3A00Z/);
  await expect(page.getByText("No violations match.")).toBeVisible();
  await search.getByRole("button", { name: "All" }).click();
  await expect(row(page, "alice")).toHaveCount(1);
});

test("time ranges follow the clock of the service, not that of the browser", async ({ page, service }) => {
  await makeTightRule(service);
  await deny(service, [{ user_id: "anna" }], 4, 1);
  await page.clock.setFixedTime(Date.now() + 3_600_000);
  await page.goto("/#/violations?last=15m");
  await expect(page.locator(".violations-table tbody tr").filter({ hasText: "tight:anna" })).toBeVisible();
});

test("the timeline and the top offenders add up", async ({ page, service }) => {
  await makeTightRule(service);
  await makeTightRule(service, { key_pattern: "quiet:{ip}", mode: "shadow" });
  await deny(service, [...Array.from({ length: 8 }, () => ALICE), BOB, BOB, BOB], 1, 4);
  await page.goto("/#/violations?last=1h");
  const chart = page.getByRole("img", { name: /^Denials per/ });
  await expect(chart).toHaveAccessibleName(/of all 4 violations: 9 denied and 9 in shadow$/);
  const most = page.getByRole("region", { name: "Top offenders" });
  await most.getByRole("button", { name: "User" }).click();
  await expect(page).toHaveURL(/by=user_id/);
  // Requests in shadow mode were allowed: they are not counted.
  await expect(most.getByRole("listitem")).toHaveText([/alice.*7/, /bob.*2/]);
  await most.getByRole("button", { name: "IP address" }).click();
  await expect(most.getByRole("listitem").first()).toContainText("203.0.113.9");
  await most.getByRole("link", { name: "198.51.100.7" }).click();
  await expect(page.getByLabel("IP address", { exact: true })).toHaveValue("198.51.100.7");
  await expect(row(page, "alice")).toHaveCount(0);
});

test("counts by user are marked as those of the first denied request", async ({ page, service }) => {
  await makeTightRule(service, { key_pattern: "team:{team}" });
  const team = { attributes: { team: "acme" } };
  const flood = Array.from({ length: 40 }, () => ({ user_id: "flooder", ...team }));
  await deny(service, [{ user_id: "early", ...team }, { user_id: "innocent", ...team }, ...flood], 1, 1);
  await page.goto("/#/violations");
  const most = page.getByRole("region", { name: "Top offenders" });
  await expect(most.getByRole("listitem")).toHaveText([/team:acme.*41/]);
  await expect(most).not.toContainText("first denied request");
  await most.getByRole("button", { name: "User" }).click();
  await expect(most).toContainText("counts in full for the user of its first denied request");
  await most.getByRole("link", { name: "innocent" }).click();
  await expect(page.getByRole("region", { name: "Recorded violations" })).toContainText("first denied request of each");
  const label = row(page, "team:acme").locator("td").filter({ hasText: "innocent" });
  await expect(label).toHaveAttribute("data-label", "First user");
  await expect(page.locator(".violations-table thead")).toContainText("First denied request of the minute");
});

test("violations in shadow mode are separate", async ({ page, service }) => {
  await makeTightRule(service, { mode: "shadow" });
  await deny(service, [ALICE], 3, 1);
  await page.goto("/#/violations");
  await expect(page.getByRole("region", { name: "Top offenders" })).toContainText("No denials.");
  await page.getByRole("link", { name: "shadow mode" }).click();
  const most = page.getByRole("region", { name: "Top offenders (shadow)" });
  await expect(most.getByRole("listitem")).toHaveText([/tight:alice.*2/]);
  await expect(page.getByLabel("Mode")).toHaveValue("shadow");
});

test("more are loaded on request, and an export has them all", async ({ page, service }) => {
  await makeTightRule(service);
  const users = Array.from({ length: 130 }, (_, index) => ({ user_id: `user-${index}` }));
  await deny(service, [...users, { user_id: "=1+1", endpoint: 'a"b\nc' }], 2, 131);
  await page.goto("/#/violations");
  await expect(page.getByText("100 of all 131 violations")).toBeVisible();
  await page.getByRole("button", { name: "Load more" }).click();
  await expect(page.getByText("131 of all 131 violations")).toBeVisible();
  await expect(page.getByRole("button", { name: "Load more" })).toBeHidden();

  const saved = async (name: string) => {
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: `Export ${name}` }).click(),
    ]);
    await expect(page.getByText("Exported 131 rows.").last()).toBeVisible();
    return readFile(await download.path(), "utf8");
  };
  const csv = await saved("CSV");
  expect(csv.match(/violation_id/g)).toHaveLength(1);
  expect(csv.match(/tight:user-/g)).toHaveLength(130);
  // Escaped, so that a spreadsheet does not run it as a formula.
  expect(csv).toContain(",'=1+1,");
  const json = JSON.parse(await saved("JSON")) as { violations: { endpoint: string | null }[] };
  expect(json.violations).toHaveLength(131);
  expect(json.violations.map(({ endpoint }) => endpoint)).toContain('a"b\nc');
});

test("an export can be cancelled", async ({ page, service }) => {
  await makeTightRule(service);
  await deny(service, [ALICE], 2, 1);
  await page.goto("/#/violations");
  await expect(row(page, "alice")).toHaveCount(1);
  // Never answered.
  await page.route("**/v1/violations?*format=csv*", () => {});
  await page.getByRole("button", { name: "Export CSV" }).click();
  await expect(page.getByText("Exporting: 0 rows")).toBeVisible();
  await page.getByRole("button", { name: "Cancel" }).click();
  await expect(page.getByText("Export cancelled.")).toBeVisible();
  await expect(page.getByRole("button", { name: "Export CSV" })).toBeVisible();
});

test("an error is shown at its field, and a slow search is reported", async ({ page }) => {
  await page.goto("/#/violations?ip=nonsense");
  await expect(page.getByLabel("IP address", { exact: true })).toHaveAccessibleDescription("is not an address");
  const detail = "the query timed out: limit it with `from` and `to`, or try again";
  const body = JSON.stringify({ type: "about:blank", title: "Service Unavailable", status: 503, detail });
  await page.route("**/v1/violations?*", (route) => route.fulfill({ status: 503, body }));
  await page.getByLabel("IP address", { exact: true }).fill("203.0.113.9");
  await page.getByRole("button", { name: "Search" }).click();
  await expect(page.getByRole("alert")).toContainText("the query timed out");
  await expect(page.getByLabel("IP address", { exact: true })).toHaveValue("203.0.113.9");
});

base("an empty audit says so", async ({ page }) => {
  await page.goto("/#/violations");
  await expect(page.getByText("No violations yet.")).toBeVisible();
  await expect(page.getByText("audit.record")).toBeHidden();
});

const unrecorded = base.extend({
  // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the dependencies of a fixture from this pattern.
  service: async ({}, use) => {
    const service = await Service.start({ SLUICEGATE_AUDIT_RECORD: "none" });
    await use(service);
    await service.stop();
  },
});

unrecorded("a disabled audit is reported", async ({ page, service }) => {
  await makeTightRule(service);
  for (let time = 0; time < 3; time += 1) await service.call("POST", "/v1/check", ALICE);
  await page.goto("/#/violations");
  await expect(page.getByText("recorded none of them")).toBeVisible();
});
