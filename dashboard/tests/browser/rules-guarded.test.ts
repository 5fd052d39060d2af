/** Rules that are read-only, expired tokens, hostile texts, and accessibility. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import type axe from "axe-core";
import { visible } from "../../src/ui/visible.ts";
import { expect, type Service, test } from "./service.ts";

const editor = (page: Page) => page.getByRole("dialog");

test.describe("rules from a file", () => {
  test.use({
    // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the dependencies of a fixture from this pattern.
    settings: async ({}, use) => {
      const folder = mkdtempSync(join(tmpdir(), "sluicegate-rules-"));
      const file = join(folder, "rules.toml");
      writeFileSync(file, '[[rule]]\nrule_id = 3\nkey_pattern = "user:{user_id}"\ntokens = 10\nperiod = "1s"\n');
      await use({ SLUICEGATE_RULES_FILE: file, SLUICEGATE_RULES_SOURCE: "file" });
      rmSync(folder, { recursive: true, force: true });
    },
  });

  test("are shown without ways to change them", async ({ page, settings }) => {
    await page.goto("/#/rules");
    await expect(page.getByText(`These rules come from the file ${settings["SLUICEGATE_RULES_FILE"]}`)).toBeVisible();
    await expect(page.getByRole("row").filter({ hasText: "user:{user_id}" })).toContainText("burst 10");
    await expect(page.getByRole("link", { name: "New rule" })).toHaveCount(0);
    await expect(page.getByRole("switch")).toHaveCount(0);
    await page.getByRole("row").filter({ hasText: "user:{user_id}" }).getByRole("link").click();
    await expect(editor(page)).toContainText("read-only here");
    await expect(editor(page)).toContainText("Each user may send 10 at once");
    await expect(page.getByRole("button", { name: "Save" })).toHaveCount(0);
    // The address of the editor leads to the same view.
    await page.goto("/#/rules?rule=new");
    await expect(editor(page)).toContainText("read-only here");
  });

  test("that are not valid are reported", async ({ page, service, settings }) => {
    await page.goto("/#/rules");
    writeFileSync(settings["SLUICEGATE_RULES_FILE"]!, '[[rule]]\nkey_pattern = "user:{user_id"\n');
    await expect
      .poll(async () => (await service.call<{ refused: string | null }>("GET", "/v1/rules")).refused)
      .not.toBeNull();
    await page.reload();
    await expect(page.getByText("The last valid rules stay in force")).toBeVisible();
    await expect(page.getByRole("row").filter({ hasText: "user:{user_id}" })).toBeVisible();
  });
});

const HOSTILE = '<img src=x onerror="window.hurt=1">"\'</td><script>window.hurt=1</script>\u202egnirts';

test("hostile texts are shown as text", async ({ page, service }) => {
  const short = '<img src=x onerror="window.hurt=1">';
  const made = await service.call<{ rule_id: number }>("POST", "/v1/rules", {
    key_pattern: `${short}:{user_id}`,
    conditions: { endpoint: HOSTILE },
    description: HOSTILE,
    plan: "<b>plan</b>",
    name: short,
    replaces: [HOSTILE],
    tokens: 1,
    period: 1,
  });
  await service.call("PATCH", `/v1/rules/${made.rule_id}`, { description: `${HOSTILE}2` });
  const request = { user_id: HOSTILE, endpoint: HOSTILE, plan: "<b>plan</b>" };
  for (let time = 0; time < 3; time += 1) await service.call("POST", "/v1/check", request);
  await service.call("POST", "/v1/overrides", { rule_id: made.rule_id, subject: HOSTILE, blocked: true });
  await page.goto("/#/rules");
  const shown = visible(HOSTILE);
  await expect(page.getByRole("row").filter({ hasText: shown }).first()).toBeVisible();
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  expect(width).toBeLessThanOrEqual(page.viewportSize()!.width);
  await page.goto(`/#/rules?rule=${made.rule_id}`);
  await expect(page.getByLabel("Glob 1")).toHaveValue(HOSTILE);
  await expect(page.getByLabel("Overrides")).toContainText(shown);
  await expect(page.getByLabel("Preview")).toContainText("3 denied");
  await page.goto(`/#/rules?history=${made.rule_id}`);
  await expect(page.getByRole("listitem").first()).toContainText(`${shown}2`);
  expect(await page.evaluate(() => "hurt" in window)).toBe(false);
  expect(await page.locator("img[src=x], td script, b").count()).toBe(0);
});

/** Creates the first token, which makes the service require one, and signs in with it. */
async function signIn(page: Page, service: Service, role: string): Promise<string> {
  const token = service.run("tokens", "create", "page", "--role", role).trim();
  await expect.poll(async () => (await service.request("GET", "/v1/rules")).status).toBe(401);
  await page.goto("/#/rules");
  await page.getByLabel("Token", { exact: true }).fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("row").first()).toBeVisible();
  return token;
}

test("a read-only token is reported, and no edits are lost", async ({ page, service }) => {
  await signIn(page, service, "read");
  await page.getByRole("switch", { name: "Rule 5 active" }).click();
  await expect(page.getByText("Could not change rule 5: this needs a token whose role is admin")).toBeVisible();
  await page.goto("/#/rules?rule=5");
  await page.getByLabel("Burst", { exact: true }).fill("9");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByRole("alert")).toContainText("you can read and preview rules, but not save them");
  await expect(page.getByLabel("Burst", { exact: true })).toHaveValue("9");
  await expect(page.getByLabel("Preview")).toContainText("No recent requests");
});

test("a token revoked while editing loses no edits", async ({ page, service }) => {
  const token = await signIn(page, service, "admin");
  const other = service.run("tokens", "create", "other", "--role", "admin").trim();
  const status = async (token: string) =>
    (await service.request("GET", "/v1/rules/5", undefined, { authorization: `Bearer ${token}` })).status;
  await expect.poll(() => status(other)).toBe(200);
  await page.goto("/#/rules?rule=5");
  await page.getByLabel("Burst", { exact: true }).fill("9");
  service.run("tokens", "revoke", "--yes", "page");
  await expect.poll(() => status(token)).toBe(401);
  // The table behind the editor polls, so the page notices the revoked token.
  await page.getByLabel("Token", { exact: true }).fill(other);
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByLabel("Burst", { exact: true })).toHaveValue("9");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByText("Rule 5 saved")).toBeVisible();
  const saved = await service.request("GET", "/v1/rules/5", undefined, { authorization: `Bearer ${other}` });
  expect(await saved.json()).toMatchObject({ burst_capacity: 9 });
});

test("drafts are dropped when the user signs out", async ({ page, service }) => {
  const token = await signIn(page, service, "admin");
  await page.goto("/#/rules?rule=5");
  await page.getByLabel("Burst", { exact: true }).fill("9");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Token", { exact: true }).fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("row").filter({ hasText: "login:{ip}" }).getByRole("link").click();
  await expect(page.getByLabel("Burst", { exact: true })).toHaveValue("5");
});

test("a service that is down is reported, and edits are kept", async ({ page, service }) => {
  await page.goto("/#/rules?rule=5");
  await page.getByLabel("Burst", { exact: true }).fill("9");
  await service.stop();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByRole("alert").first()).toContainText("the service does not answer");
  await expect(page.getByLabel("Burst", { exact: true })).toHaveValue("9");
});

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

/** Violations of WCAG A and AA. */
async function accessibilityFaults(page: Page): Promise<string[]> {
  await page.evaluate(readFileSync(AXE, "utf8"));
  return page.evaluate(async () => {
    const { axe } = window as unknown as { axe: typeof import("axe-core") };
    const found: axe.AxeResults = await axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"] });
    return found.violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 160)}`));
  });
}

test("the table, the editor, a conflict and the history are accessible", async ({ page, service }) => {
  await service.call("PATCH", "/v1/rules/7", { mode: "shadow" });
  await service.call("PATCH", "/v1/rules/9", { is_active: false });
  for (let time = 0; time < 9; time += 1) {
    await service.call("POST", "/v1/check", { ip: "203.0.113.9", endpoint: "/login" });
  }
  await page.goto("/#/rules");
  await expect(page.getByRole("row").filter({ hasText: "4 denied" })).toBeVisible();
  expect(await accessibilityFaults(page)).toEqual([]);
  await page.goto("/#/rules?history=all");
  await expect(page.getByRole("listitem")).toHaveCount(2);
  expect(await accessibilityFaults(page)).toEqual([]);
  await page.goto("/#/rules?rule=5");
  await page.getByText("Advanced: algorithm").click();
  await page.getByLabel("Tokens").fill("0");
  await expect(page.getByRole("alert")).toBeVisible();
  expect(await accessibilityFaults(page)).toEqual([]);
  await page.getByLabel("Tokens").fill("2");
  await expect(page.getByLabel("Preview")).toContainText("Most denied");
  await service.call("PATCH", "/v1/rules/5", { tokens: 6 });
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await expect(page.getByLabel("Conflict")).toBeVisible();
  expect(await accessibilityFaults(page)).toEqual([]);
});
