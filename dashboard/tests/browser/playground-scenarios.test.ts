import { execFileSync } from "node:child_process";
import { client, counts, SLOW, send, type Take, watchTakes } from "./playground-parts.ts";
import { expect, test } from "./service.ts";

const SCENARIOS = [
  ["Mobile start-up", "watch the large bucket"],
  ["Search autocomplete", "watch somebody who types"],
  ["Webhook retry storm", "watch those that do so in step"],
  ["Login brute force", "watch the attacker's guesses"],
  ["Payment", "watch a double click"],
  ["Window edge", "watch the fixed window"],
  ["Batch job", "watch the level drop"],
] as const;

test("each scenario says what to watch, plays, and can be stopped", async ({ page }) => {
  test.slow();
  const takes = watchTakes(page);
  await page.goto("/");
  const scenarios = page.getByRole("region", { name: "Scenarios" });
  for (const [title, watch] of SCENARIOS) {
    await scenarios.getByRole("button", { name: title }).click();
    await expect(scenarios.getByText(watch)).toBeVisible();
    const before = takes.filter(({ cost }) => cost > 0).length;
    await scenarios.getByRole("button", { name: "▶ Play" }).click();
    await expect.poll(() => takes.filter(({ cost }) => cost > 0).length).toBeGreaterThan(before);
    await scenarios.getByRole("button", { name: "■ Stop" }).click();
    await expect(scenarios.getByRole("button", { name: "▶ Play" })).toBeVisible();
  }
  await scenarios.getByRole("button", { name: "Free play" }).click();
  await expect(page.getByRole("list", { name: "How it works" })).toBeVisible();
});

test("around an edge, a fixed window lets pass what the others deny", async ({ page }) => {
  test.slow();
  await page.goto("/#/playground?s=edge");
  const play = page.getByRole("button", { name: "▶ Play" });
  const allowed = async (name: string) =>
    Number.parseInt((await client(page, name).locator(".badge.allowed").innerText()).slice(2), 10);
  const missed = page.getByText("The first burst ran past the edge");
  // On a machine that is held up, the page says that the first ten came too late: then it is played again.
  await expect(async () => {
    await play.click();
    await expect(page.getByText("waits for an edge")).toBeVisible();
    await expect(play).toBeVisible({ timeout: 20_000 });
    await expect(missed).toBeHidden({ timeout: 1000 });
  }).toPass({ timeout: 80_000 });
  await counts(client(page, "Sliding window"), 10, 10);
  expect(await allowed("Fixed window")).toBeGreaterThanOrEqual(17);
  expect(await allowed("Token bucket")).toBeLessThanOrEqual(14);
  // All of them are in sight together, with what to watch.
  for (const name of ["Token bucket", "Fixed window", "Sliding window"]) {
    await expect(client(page, name).locator(".badge.denied")).toBeInViewport({ ratio: 1 });
  }
  await expect(page.getByText("watch the fixed window")).toBeInViewport();
});

test("a first burst that ran past the edge is said, beside what plays it again", async ({ page }) => {
  test.slow();
  // Where the edge is, is told at once.
  await page.route("**/v1/take*", async (route) => {
    const { key, cost } = route.request().postDataJSON() as Take;
    const answer = await route.fetch();
    if (cost > 0 && !key.endsWith(":edge")) await page.waitForTimeout(2500);
    await route.fulfill({ response: answer }).catch(() => {});
  });
  await page.goto("/#/playground?s=edge");
  await page.getByRole("button", { name: "▶ Play" }).click();
  const scenarios = page.getByRole("region", { name: "Scenarios" });
  await expect(scenarios.getByText("The first burst ran past the edge")).toBeVisible({ timeout: 40_000 });
  await expect(scenarios.getByRole("button", { name: "▶ Play" })).toBeVisible();
  await page.unrouteAll({ behavior: "ignoreErrors" });
});

test("what a scenario could not send is said beside it", async ({ page }) => {
  await page.goto("/#/playground?s=search");
  await expect(page.locator(".pg-level-figure").first()).toHaveText("100");
  // Nothing comes back, so that soon too much is under way.
  await page.route("**/v1/take*", () => {});
  await page.getByRole("button", { name: "▶ Play" }).click();
  const scenarios = page.getByRole("region", { name: "Scenarios" });
  await expect(scenarios.getByText(/^\d+ not sent: 64 were under way/)).toBeVisible();
  await expect(page.getByRole("region", { name: "Traffic" }).getByText("not sent")).toHaveCount(0);
});

test("what one has set is in the address, and comes back with it", async ({ page, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.goto("/");
  await page.getByLabel("Capacity", { exact: true }).fill("42");
  await page.getByLabel("Name of the client").fill("Ann & Bob_1");
  await page.getByLabel("Steady rate, requests per second").fill("7");
  await expect(page).toHaveURL(/l=tb_42_.*rate=7/);
  await page.reload();
  await expect(page.getByLabel("Capacity", { exact: true })).toHaveValue("42");
  await expect(page.getByText("7 per second")).toBeVisible();
  await page.getByRole("button", { name: "Copy link" }).click();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  const other = await context.newPage();
  await other.goto(link);
  await expect(other.getByLabel("Capacity", { exact: true })).toHaveValue("42");
  await expect(other.getByLabel("Name of the client")).toHaveValue("Ann & Bob_1");
  await other.close();
  // Another view and back: nothing is lost, not even what was counted.
  await send(page).click();
  await counts(client(page, "Ann & Bob_1"), 1, 0);
  await page.getByRole("navigation").getByRole("link", { name: "Explain" }).click();
  await page.getByRole("navigation").getByRole("link", { name: "Playground" }).click();
  await counts(client(page, "Ann & Bob_1"), 1, 0);
});

test("a hostile address gives the defaults", async ({ page }) => {
  const hostile = "l=tb_-1_NaN_1e99_c_0_own_%3Cimg+src%3Dx+onerror%3Dalert(1)%3E&rate=1e9&s=%3Cscript%3E&s=constructor";
  await page.goto(`/#/playground?${hostile}`);
  await expect(client(page, "Client 1").locator(".pg-level-figure")).toHaveText("10.0");
  await expect(page).toHaveURL(/#\/playground$/);
  await page.goto("/#/playground?l=tb_10_1_1_c_1_own_%3Cimg+src%3Dx+onerror%3Dalert(1)%3E");
  await expect(page.getByLabel("Name of the client")).toHaveValue("<img src=x onerror=alert(1)>");
});

test("the request as curl does what the page did", async ({ page, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.goto(`/${SLOW}`);
  await send(page).click();
  await counts(client(page, "Client 1"), 1, 0);
  await page.getByRole("button", { name: "Copy as curl" }).click();
  await expect(page.getByText("Copied.")).toBeVisible();
  const line = await page.evaluate(() => navigator.clipboard.readText());
  const answer = execFileSync("/bin/sh", ["-c", line]).toString();
  expect(answer).toContain("200 OK");
  expect(answer).toContain('"remaining":8');
  // The page sees what somebody else has spent.
  await expect(page.locator(".pg-level-figure")).toHaveText("8.0");
});
