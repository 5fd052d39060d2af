import { execFileSync } from "node:child_process";
import { client, counts, SLOW, send, type Take, watchTakes } from "./playground-parts.ts";
import { expect, test } from "./service.ts";

const SCENARIOS = [
  ["Mobile start-up", "watch the large bucket"],
  ["Autocomplete", "Watch a user who types"],
  ["Webhook retry storm", "Watch the synchronised retries"],
  ["Login brute force", "watch the attacker's guesses"],
  ["Payment", "watch a double click"],
  ["Window boundary", "watch the fixed window"],
  ["Batch job", "watch the level drop"],
] as const;

test("each scenario has a description, plays, and can be stopped", async ({ page }) => {
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

test("around a boundary, a fixed window allows what the others deny", async ({ page }) => {
  test.slow();
  await page.goto("/#/playground?s=edge");
  const play = page.getByRole("button", { name: "▶ Play" });
  const allowed = async (name: string) =>
    Number.parseInt((await client(page, name).locator(".badge.allowed").innerText()).slice(2), 10);
  const missed = page.getByText("the first burst crossed the window boundary");
  // On a busy machine the first ten may come too late, which the page reports: then it is played again.
  await expect(async () => {
    await play.click();
    await expect(page.getByText("waiting for a window boundary")).toBeVisible();
    await expect(play).toBeVisible({ timeout: 20_000 });
    await expect(missed).toBeHidden({ timeout: 1000 });
  }).toPass({ timeout: 80_000 });
  await counts(client(page, "Sliding window"), 10, 10);
  expect(await allowed("Fixed window")).toBeGreaterThanOrEqual(17);
  expect(await allowed("Token bucket")).toBeLessThanOrEqual(14);
  // All lanes are visible together with the description.
  for (const name of ["Token bucket", "Fixed window", "Sliding window"]) {
    await expect(client(page, name).locator(".badge.denied")).toBeInViewport({ ratio: 1 });
  }
  await expect(page.getByText("watch the fixed window")).toBeInViewport();
});

test("a first burst that crossed the boundary is reported beside the play button", async ({ page }) => {
  test.slow();
  // The request for the boundary is answered at once.
  await page.route("**/v1/take*", async (route) => {
    const { key, cost } = route.request().postDataJSON() as Take;
    const answer = await route.fetch();
    if (cost > 0 && !key.endsWith(":edge")) await page.waitForTimeout(2500);
    await route.fulfill({ response: answer }).catch(() => {});
  });
  await page.goto("/#/playground?s=edge");
  await page.getByRole("button", { name: "▶ Play" }).click();
  const scenarios = page.getByRole("region", { name: "Scenarios" });
  await expect(scenarios.getByText("the first burst crossed the window boundary")).toBeVisible({ timeout: 40_000 });
  await expect(scenarios.getByRole("button", { name: "▶ Play" })).toBeVisible();
  await page.unrouteAll({ behavior: "ignoreErrors" });
});

test("requests that a scenario could not send are reported beside it", async ({ page }) => {
  await page.goto("/#/playground?s=search");
  await expect(page.locator(".pg-level-figure").first()).toHaveText("100");
  // No answers, so that too many requests are in flight.
  await page.route("**/v1/take*", () => {});
  await page.getByRole("button", { name: "▶ Play" }).click();
  const scenarios = page.getByRole("region", { name: "Scenarios" });
  await expect(scenarios.getByText(/^\d+ not sent: 64 requests were in flight/)).toBeVisible();
  await expect(page.getByRole("region", { name: "Traffic" }).getByText("not sent")).toHaveCount(0);
});

test("the setup is in the address and restored from it", async ({ page, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.goto("/");
  await page.getByLabel("Capacity", { exact: true }).fill("42");
  await page.getByLabel("Client name").fill("Ann & Bob_1");
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
  await expect(other.getByLabel("Client name")).toHaveValue("Ann & Bob_1");
  await other.close();
  // Another view and back: nothing is lost, not even the counts.
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
  await expect(page.getByLabel("Client name")).toHaveValue("<img src=x onerror=alert(1)>");
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
  // The page shows tokens spent by another client.
  await expect(page.locator(".pg-level-figure")).toHaveText("8.0");
});
