/** Rule editor: errors at fields, preview, conflicts and history. */

import type { Page } from "@playwright/test";
import { expect, test } from "./service.ts";

const editor = (page: Page) => page.getByRole("dialog");
const save = (page: Page) => page.getByRole("button", { name: "Save", exact: true }).click();

interface Stored {
  readonly burst_capacity: number;
  readonly tokens: number;
  readonly description: string;
  readonly version: number;
}

test("errors of the service are shown at the field", async ({ page }) => {
  await page.goto("/#/rules?rule=new");
  const alert = page.getByRole("alert");
  const wrong = async (label: string, text: string, words: string) => {
    const input = editor(page).getByLabel(label, { exact: true });
    const before = await input.inputValue();
    await input.fill(text);
    await expect(alert).toContainText(words);
    await expect(input).toHaveAttribute("aria-invalid", "true");
    await expect(input).toHaveAccessibleDescription(new RegExp(words.slice(0, 12)));
    await expect(input).toHaveValue(text);
    await input.fill(before);
    await expect(alert).toHaveCount(0);
  };
  await wrong("Tokens", "0", "a rate of zero never refills");
  await wrong("Tokens", "many", "must be a whole number");
  await wrong("Period", "0.0000001", "not a whole number of microseconds");
  await wrong("Burst", "0", "a capacity of zero grants nothing");
  await wrong("Burst", "9".repeat(400), "must be a whole number");
  await wrong("Key pattern", "user:{user_id", "this `{` is never closed");
  await page.getByRole("button", { name: "Add a condition on endpoint" }).click();
  await expect(alert).toContainText("an empty glob matches nothing");
  await expect(page.getByLabel("Glob 1")).toHaveAttribute("aria-invalid", "true");
  await page.getByLabel("Glob 1").fill("/a");
  await expect(alert).toHaveCount(0);
  await page.getByLabel("Plans").selectOption("the plan named");
  await expect(alert).toContainText("enter the name of the plan");
  await wrongAfter(page, "Plan", "x".repeat(33), "at most 32 bytes");
});

/** Expects an error at a field without restoring its value. */
async function wrongAfter(page: Page, label: string, text: string, words: string): Promise<void> {
  await editor(page).getByLabel(label, { exact: true }).fill(text);
  await expect(page.getByRole("alert")).toContainText(words);
  await expect(editor(page).getByLabel(label, { exact: true })).toHaveAttribute("aria-invalid", "true");
}

test("an error in a folded field unfolds and focuses it", async ({ page }) => {
  await page.goto("/#/rules?rule=new");
  await page.getByLabel("Key pattern").fill("mine");
  await page.getByText("Advanced: algorithm").click();
  await page.getByLabel("Name (for rules").fill("a");
  await page.getByLabel("Replaces rules").fill("b\na");
  await expect(page.getByRole("alert")).toContainText("a rule cannot replace itself");
  await page.getByText("Advanced: algorithm").click();
  await page.getByRole("button", { name: "Create rule" }).click();
  await expect(page.getByLabel("Replaces rules")).toBeFocused();
  await expect(page.getByLabel("Replaces rules")).toHaveValue("b\na");
});

test("a window has no burst, a queue has a longest wait, no limit has no quota", async ({ page, service }) => {
  await page.goto("/#/rules?rule=new");
  await page.getByLabel("Key pattern").fill("several:{user_id}");
  await page.getByText("Advanced: algorithm").click();
  await page.getByLabel("Algorithm").selectOption({ label: "fixed window: per clock period" });
  await expect(page.getByLabel("Burst", { exact: true })).toHaveCount(0);
  await expect(page.getByLabel("Effect")).toContainText("up to 20 in the same time");
  await page.getByLabel("Algorithm").selectOption({ label: "leaky bucket: steady, excess requests queue" });
  await expect(page.getByLabel("Burst", { exact: true })).toHaveValue("50");
  await page.getByLabel("Longest wait", { exact: true }).fill("x");
  await expect(page.getByRole("alert")).toBeVisible();
  await page.getByLabel("Longest wait", { exact: true }).fill("2.5");
  await page.getByRole("button", { name: "Create rule" }).click();
  await expect(editor(page)).toHaveCount(0);
  const rule = await service.call<object>("GET", "/v1/rules/10");
  expect(rule).toMatchObject({ algorithm: "leaky_bucket", burst_capacity: 50, max_wait: 2.5 });
  await page.goto("/#/rules?rule=10");
  await page.getByLabel("Mode", { exact: true }).selectOption("unlimited");
  await expect(page.getByLabel("Tokens")).toHaveCount(0);
  await save(page);
  await expect(page.getByRole("row").filter({ hasText: "several:{user_id}" })).toContainText("no limit");
});

test("the preview shows the subjects that the rule would deny", async ({ page, service }) => {
  await page.goto("/#/rules?rule=5");
  const preview = page.getByLabel("Preview");
  await expect(preview).toContainText("No recent requests");
  for (let time = 0; time < 9; time += 1) {
    await service.call("POST", "/v1/check", { ip: "203.0.113.9", endpoint: "/login" });
  }
  await preview.getByRole("button", { name: "Refresh" }).click();
  await expect(preview.locator(".outcome").first()).toContainText("5 allowed ✕ 4 denied");
  await page.getByLabel("Tokens").fill("2");
  await page.getByLabel("Burst", { exact: true }).fill("2");
  await expect(preview.locator(".outcome").first()).toContainText("2 allowed ✕ 7 denied");
  await expect(preview.locator(".outcome").last()).toContainText("5 allowed ✕ 4 denied");
  await expect(preview).toContainText("1 of 1 subject would be denied, the first at");
  const subject = preview.getByRole("link", { name: "203.0.113.9" });
  await expect(subject).toHaveAttribute("href", "#/live?rule=5&subject=203.0.113.9");
  // The preview changes nothing.
  expect((await service.call<Stored>("GET", "/v1/rules/5")).version).toBe(1);
});

test("an outdated preview is marked, and an unchanged rule cannot be saved", async ({ page, service }) => {
  for (let time = 0; time < 9; time += 1) {
    await service.call("POST", "/v1/check", { ip: "203.0.113.9", endpoint: "/login" });
  }
  await page.goto("/#/rules?rule=5");
  const preview = page.getByLabel("Preview");
  const button = page.getByRole("button", { name: "Save", exact: true });
  await expect(preview).toContainText("Edited rule");
  await expect(button).toBeDisabled();
  await page.getByLabel("Tokens").fill("-3");
  await expect(page.getByLabel("Tokens")).toHaveAccessibleDescription(/^must be a whole number/);
  await expect(editor(page)).toContainText("Correct the marked field");
  await expect(preview).toContainText("Before the last edit");
  await expect(button).toBeEnabled();
  await page.getByLabel("Tokens").fill("4");
  await expect(preview).toContainText("Edited rule");
  await page.getByRole("button", { name: "Discard changes" }).click();
  await expect(button).toBeDisabled();
});

test("unsaved changes are restored when the editor is opened again", async ({ page }) => {
  await page.goto("/#/rules?rule=5");
  await page.getByLabel("Burst", { exact: true }).fill("77");
  await page.keyboard.press("Escape");
  await expect(editor(page)).toHaveCount(0);
  await page.getByRole("row").filter({ hasText: "login:{ip}" }).getByRole("link").click();
  await expect(page.getByLabel("Burst", { exact: true })).toHaveValue("77");
  await page.getByRole("button", { name: "Start over" }).click();
  await expect(page.getByLabel("Burst", { exact: true })).toHaveValue("5");
  await expect(page.getByRole("button", { name: "Discard changes" })).toHaveCount(0);
});

/** Edits two columns of rule 5 while `patch` changes the rule, and saves. */
async function makeConflict(page: Page, patch: () => Promise<unknown>): Promise<void> {
  await page.goto("/#/rules?rule=5");
  await page.getByLabel("Burst", { exact: true }).fill("8");
  await page.getByRole("textbox", { name: "Description" }).fill("mine");
  await patch();
  await save(page);
  await expect(page.getByRole("heading", { name: "This rule was changed meanwhile" })).toBeFocused();
}

const THEIRS = { tokens: 6, description: "theirs" };

test("a conflict: keep all mine", async ({ page, service }) => {
  await makeConflict(page, () => service.call("PATCH", "/v1/rules/5", THEIRS));
  await page.getByRole("button", { name: "Keep all mine" }).click();
  await expect(editor(page)).toHaveCount(0);
  const rule = await service.call<Stored>("GET", "/v1/rules/5");
  expect(rule).toMatchObject({ burst_capacity: 8, tokens: 5, description: "mine", version: 3 });
});

test("a conflict with a change made while the editor was closed", async ({ page, service }) => {
  const open = () => page.getByRole("row").filter({ hasText: "login:{ip}" }).getByRole("link").click();
  await page.goto("/#/rules?rule=5");
  await page.getByLabel("Burst", { exact: true }).fill("8");
  await page.keyboard.press("Escape");
  await expect(editor(page)).toHaveCount(0);
  await service.call("PATCH", "/v1/rules/5", THEIRS);
  await open();
  await expect(page.getByText("Unsaved changes")).toBeVisible();
  await save(page);
  const table = page.getByLabel("Conflict").getByRole("table");
  await expect(table.getByRole("row").filter({ hasText: "Burst" })).toContainText("you changed it");
  await expect(table.getByRole("row").filter({ hasText: "Rate" })).toContainText("they changed it");
  // Discarding the edits loads the current version.
  await page.keyboard.press("Escape");
  await open();
  await page.getByRole("button", { name: "Start over" }).click();
  await expect(page.getByRole("textbox", { name: "Description" })).toHaveValue("theirs");
  await expect(page.getByLabel("Burst", { exact: true })).toHaveValue("5");
  await page.getByLabel("Burst", { exact: true }).fill("9");
  await save(page);
  await expect(editor(page)).toHaveCount(0);
  const rule = await service.call<Stored>("GET", "/v1/rules/5");
  expect(rule).toMatchObject({ burst_capacity: 9, ...THEIRS, version: 3 });
});

test("a conflict: take all theirs", async ({ page, service }) => {
  await makeConflict(page, () => service.call("PATCH", "/v1/rules/5", THEIRS));
  await page.getByRole("button", { name: "Take all theirs" }).click();
  await expect(page.getByRole("textbox", { name: "Description" })).toHaveValue("theirs");
  await expect(page.getByLabel("Burst", { exact: true })).toHaveValue("5");
  await expect(page.getByLabel("Tokens")).toHaveValue("6");
  expect((await service.call<Stored>("GET", "/v1/rules/5")).version).toBe(2);
});

test("a conflict: some columns of each", async ({ page, service }) => {
  await makeConflict(page, () => service.call("PATCH", "/v1/rules/5", THEIRS));
  const table = page.getByLabel("Conflict").getByRole("table");
  await expect(table.getByRole("row").filter({ hasText: "Burst" })).toContainText("you changed it");
  await expect(table.getByRole("row").filter({ hasText: "Rate" })).toContainText("they changed it");
  await expect(table.getByRole("row").filter({ hasText: "Description" })).toContainText("both changed it");
  await page.getByRole("radio", { name: "Description: theirs" }).check();
  await page.getByRole("button", { name: "Save selection" }).click();
  await expect(editor(page)).toHaveCount(0);
  const rule = await service.call<Stored>("GET", "/v1/rules/5");
  expect(rule).toMatchObject({ burst_capacity: 8, tokens: 6, description: "theirs", version: 3 });
});

test("a rule that was deleted meanwhile can be created again", async ({ page, service }) => {
  await page.goto("/#/rules?rule=5");
  await page.getByLabel("Burst", { exact: true }).fill("8");
  await service.call("DELETE", "/v1/rules/5");
  await save(page);
  await page.getByRole("button", { name: "Create it again" }).click();
  await page.getByRole("button", { name: "Create rule" }).click();
  await expect(editor(page)).toHaveCount(0);
  expect(await service.call<Stored>("GET", "/v1/rules/5")).toMatchObject({ burst_capacity: 8, tokens: 5 });
});

test("the history shows changes and restores a version", async ({ page, service }) => {
  await service.call("PATCH", "/v1/rules/5", { tokens: 7, mode: "shadow" });
  await page.goto("/#/rules?history=5");
  const change = page.getByRole("listitem").filter({ hasText: "Changed" });
  await expect(change).toContainText("by local");
  await expect(change).toContainText("5 per minute → 7 per minute");
  await expect(change).toContainText("enforce → shadow");
  await change.getByRole("button", { name: "Restore previous version" }).click();
  await expect(page.getByLabel("Tokens")).toHaveValue("5");
  await expect(page.getByText("from the history")).toBeVisible();
  await save(page);
  await expect(editor(page)).toHaveCount(0);
  expect(await service.call("GET", "/v1/rules/5")).toMatchObject({ tokens: 5, mode: "enforce", version: 3 });
});

test("a deleted rule is restored with its number", async ({ page, service }) => {
  await service.call("DELETE", "/v1/rules/5");
  await page.goto("/#/rules");
  await page.getByRole("main").getByRole("link", { name: "History" }).click();
  await expect(page.getByRole("listitem").first()).toContainText("Deleted: rule 5 by local");
  await page.getByRole("button", { name: "Restore rule" }).click();
  await expect(editor(page)).toContainText("It will be restored as rule 5");
  await page.getByRole("button", { name: "Create rule" }).click();
  await expect(editor(page)).toHaveCount(0);
  expect(await service.call("GET", "/v1/rules/5")).toMatchObject({ key_pattern: "login:{ip}", tokens: 5 });
});

test("a long history comes in pages", async ({ page, service }) => {
  for (let burst = 1; burst <= 34; burst += 1) {
    await service.call("PATCH", "/v1/rules/5", { burst_capacity: 100 + burst });
  }
  await page.goto("/#/rules?history=5");
  await expect(page.getByRole("listitem")).toHaveCount(30);
  await page.getByRole("button", { name: "Older changes" }).click();
  await expect(page.getByRole("listitem")).toHaveCount(34);
  await expect(page.getByRole("button", { name: "Older changes" })).toHaveCount(0);
  await expect(page.getByRole("listitem").last()).toContainText("5 → 101");
});
