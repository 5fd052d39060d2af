import { readFileSync } from "node:fs";
import type { Page } from "@playwright/test";
import { expect, test } from "./service.ts";

const HOSTILE = '<img src=x onerror="window.hurt=1">\u202e';

const records = (page: Page) => page.getByRole("list", { name: "Records, newest first" }).getByRole("listitem");

test("acts are listed with author, reason and difference, and filtered in the address", async ({ page, service }) => {
  const reason = { "x-sluicegate-reason": HOSTILE.replace("\u202e", "!") };
  await service.request("PATCH", "/v1/rules/5", { tokens: 7, description: HOSTILE }, reason);
  await service.call("POST", "/v1/callers", { name: "checkout", rights: ["check", "take"], namespace: "team-a" });
  await page.goto("/#/history");
  await expect(records(page)).toHaveCount(2);
  await expect(records(page).first()).toContainText(/Caller created\s*checkout.*by local from 127\.0\.0\.1/s);
  await records(page).first().getByText("Values").click();
  await expect(records(page).first()).toContainText(/Rights\s*check, take/);
  const changed = records(page).nth(1);
  await expect(changed).toContainText("Rule changed rule 5");
  await expect(changed.locator("q")).toHaveText(reason["x-sluicegate-reason"]);
  await expect(changed.locator("del").first()).toHaveText("5 per minute");
  await expect(changed.locator("ins").first()).toHaveText("7 per minute");
  await expect(changed.locator("ins").last()).toHaveText(HOSTILE.replace("\u202e", "\\u{202e}"));
  expect(await page.evaluate(() => "hurt" in window)).toBe(false);

  await page.getByLabel("Act").selectOption("Rule changed");
  await page.getByLabel("Who").fill("local");
  await page.getByRole("button", { name: "Search" }).click();
  await expect(page).toHaveURL(/#\/history\?act=rule\.update&who=local$/);
  await expect(records(page)).toHaveCount(1);
  await page.getByRole("button", { name: "Last hour" }).click();
  await expect(page).toHaveURL(/&last=1h$/);
  await page.reload();
  await expect(records(page)).toHaveCount(1);
  await expect(page.getByLabel("Act")).toHaveValue("rule.update");
  for (const format of ["csv", "json"] as const) {
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: `Export ${format.toUpperCase()}` }).click();
    const file = await download;
    expect(file.suggestedFilename()).toBe(`history.${format}`);
    const text = readFileSync(await file.path(), "utf8");
    expect(text).toContain("rule.update");
    expect(text).not.toContain("caller.create");
  }
  await page.goto("/#/history?who=nobody");
  await expect(page.getByText("No records match.")).toBeVisible();
  await page.goto("/#/history?rule_id=x");
  await expect(page.getByLabel("Rule")).toHaveAttribute("aria-invalid", "true");
});

test("older records are loaded on demand", async ({ page, service }) => {
  for (let count = 0; count < 52; count += 1) await service.call("POST", "/v1/buckets/5/203.0.113.9/reset");
  await page.goto("/#/history?act=bucket.reset");
  await expect(records(page)).toHaveCount(50);
  await page.getByRole("button", { name: "Older" }).click();
  await expect(records(page)).toHaveCount(52);
  await expect(page.getByRole("button", { name: "Older" })).toHaveCount(0);
});

test("acts are shown on their subject and their rule", async ({ page }) => {
  await page.goto("/#/live?rule=5&subject=203.0.113.9");
  const panel = page.getByRole("dialog");
  const history = panel.getByRole("region", { name: "History" });
  await expect(history).toContainText("No acts on this subject are recorded.");
  await panel.getByLabel("Why").fill("customer called");
  await panel.getByRole("button", { name: "Reset" }).click();
  await expect(history.getByRole("listitem")).toHaveCount(1);
  await expect(history.getByRole("listitem")).toContainText(/Bucket reset rule 5.*by local.*customer called/s);
  await expect(panel.getByLabel("Why")).toHaveValue("");
  await panel.getByRole("button", { name: "Block…" }).click();
  await panel.getByLabel("Reason").fill("brute force");
  await panel.getByRole("button", { name: "Block", exact: true }).click();
  await expect(history.getByRole("listitem").first()).toContainText(/Override set.*brute force/s);
  await history.getByRole("link", { name: "Search in the history" }).click();
  await expect(page).toHaveURL(/#\/history\?subject=203\.0\.113\.9$/);
  await expect(records(page)).toHaveCount(2);

  await page.goto("/#/rules?rule=5");
  await page.getByLabel("Burst", { exact: true }).fill("9");
  await page.getByLabel("Why").fill("more room");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByText("Rule 5 saved")).toBeVisible();
  await page.goto("/#/rules?history=5");
  await page.getByRole("button", { name: "All acts" }).click();
  await expect(page.getByRole("dialog").getByRole("listitem")).toHaveCount(3);
  await expect(page.getByRole("dialog").getByRole("listitem").first()).toContainText(/Rule changed.*more room.*Burst/s);
});

test("failed acts and those that were added up are marked", async ({ page }) => {
  const record = {
    history_id: 2,
    at: "2026-08-01T12:00:00Z",
    who: "unknown",
    act: "sign_in.failed",
    rule_id: null,
    subject: null,
    target: "http",
    before: null,
    after: null,
    address: "203.0.113.0/24",
    reason: "",
    count: 4120,
    outcome: "done",
  };
  const failed = { ...record, history_id: 1, act: "bucket.grant", rule_id: 5, count: 1, outcome: "failed" };
  const started = { ...failed, history_id: 3, outcome: "started" };
  const json = { history: [record, failed, started], next: null };
  await page.route("**/v1/history?*", (route) => route.fulfill({ json }));
  await page.goto("/#/history");
  await expect(records(page).first()).toContainText(/Sign-in failed.*4,120 times.*from 203\.0\.113\.0\/24/s);
  await expect(records(page).nth(1)).toContainText(/Tokens granted rule 5.*failed/s);
  await expect(records(page).nth(2)).toContainText(/Tokens granted rule 5.*not known/s);
});

test("a read-only token sees the history", async ({ page, service }) => {
  await service.call("PATCH", "/v1/rules/5", { tokens: 7 });
  const token = service.run("tokens", "create", "reader", "--role", "read").trim();
  await page.goto("/#/history?act=rule.update");
  await expect.poll(async () => (await service.request("GET", "/v1/rules")).status).toBe(401);
  await page.reload();
  await page.getByLabel("Token", { exact: true }).fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(records(page)).toHaveCount(1);
});
