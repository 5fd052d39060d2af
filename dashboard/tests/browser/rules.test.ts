/** Rules: the table, and creating, changing and deleting a rule. */

import type { Page } from "@playwright/test";
import { expect, type Service, test } from "./service.ts";

/** Checks the request several times and returns whether each was allowed. */
async function verdicts(service: Service, request: object, times: number): Promise<boolean[]> {
  const allowed: boolean[] = [];
  for (let time = 0; time < times; time += 1) {
    allowed.push((await service.call<{ allowed: boolean }>("POST", "/v1/check", request)).allowed);
  }
  return allowed;
}

const editor = (page: Page) => page.getByRole("dialog");
const row = (page: Page, text: string) => page.getByRole("row").filter({ hasText: text });

async function menu(page: Page, rule: number, item: string): Promise<void> {
  await page.getByRole("button", { name: `Actions for rule ${rule}`, exact: true }).click();
  await page.locator(".menu:popover-open").getByText(item).click();
}

test("the table describes the rules", async ({ page }) => {
  await page.goto("/#/rules");
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Rules");
  const login = row(page, "login:{ip}");
  await expect(login).toContainText("Each IP address, where folded endpoint is /login");
  await expect(login).toContainText("burst 5, refilling 5 per minute");
  await expect(login).toContainText("every plan");
  await expect(login).toContainText("enforce");
  await expect(row(page, "every user of the free plan")).toContainText("burst 50, refilling 10 per second");
  // Nothing is wider than the window.
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  expect(width).toBeLessThanOrEqual(page.viewportSize()!.width);
});

/** Sends enough requests for counts of four digits. */
async function sendMany(service: Service): Promise<void> {
  const request = { user_id: "42", ip: "203.0.113.9", endpoint: "/login", method: "POST", plan: "free" };
  const batch = Array.from({ length: 100 }, () => request);
  for (let time = 0; time < 12; time += 1) await service.call("POST", "/v1/check/batch", batch);
}

test("with traffic, no texts overlap", async ({ page, service }) => {
  await service.call("POST", "/v1/rules", {
    key_pattern: "try:{user_id}",
    tokens: 1,
    period: "1 hour",
    mode: "shadow",
  });
  await service.call("PATCH", "/v1/rules/2", { plan: "enterprise-with-a-long-name-000" });
  await sendMany(service);
  await page.goto("/#/rules");
  const shadow = row(page, "try:{user_id}");
  await expect(shadow).toContainText(/1,\d{3} would be denied/);
  await expect(row(page, "login:{ip}")).toContainText(/1,\d{3} denied/);
  expect(await page.locator(".rules-table tbody tr").evaluateAll(faultsOf)).toEqual([]);
});

/** Finds cells whose texts overlap, and plans that are broken on a phone. Runs in the page. */
function faultsOf(rows: Element[]): string[] {
  const boxOf = (cell: Element) => {
    // Text cut with an ellipsis stays within its cell.
    if (getComputedStyle(cell).overflowX === "hidden") return cell.getBoundingClientRect();
    const range = document.createRange();
    const seen = [...cell.childNodes].filter((node) => node.textContent !== "");
    const all = seen.map((node) => {
      const hidden = node instanceof Element ? node.querySelector(".visually-hidden") : null;
      if (hidden === null) range.selectNode(node);
      else range.setStart(node, 0);
      if (hidden !== null) range.setEndBefore(hidden);
      return range.getBoundingClientRect();
    });
    // A closed menu has no box.
    const boxes = all.filter((box) => box.width > 0);
    const most = (side: "right" | "bottom") => Math.max(...boxes.map((box) => box[side]));
    const least = (side: "left" | "top") => Math.min(...boxes.map((box) => box[side]));
    return new DOMRect(least("left"), least("top"), most("right") - least("left"), most("bottom") - least("top"));
  };
  const isOver = (one: DOMRect, other: DOMRect) =>
    Math.min(one.right, other.right) - Math.max(one.left, other.left) > 1 &&
    Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 1;
  return rows.flatMap((row) => {
    const cells = [...row.querySelectorAll("td")].filter((cell) => cell.textContent !== "");
    const boxes = cells.map(boxOf);
    const faults = cells.flatMap((cell, at) =>
      cells.flatMap((other, next) =>
        next > at && isOver(boxes[at]!, boxes[next]!) ? [`${cell.textContent} over ${other.textContent}`] : [],
      ),
    );
    const plan = row.querySelector(".rule-plan")!;
    const isBroken = innerWidth < 500 && plan.getBoundingClientRect().height > 30;
    return isBroken ? [...faults, `broken: ${plan.textContent}`] : faults;
  });
}

test("the filter is in the address, and an address filters", async ({ page }) => {
  await page.goto("/#/rules?text=login");
  await expect(page.getByRole("status").filter({ hasText: "1 of 9 rules" })).toBeVisible();
  await page.getByLabel("Search", { exact: true }).fill("");
  await page.getByLabel("Plan").selectOption("pro");
  await expect(page.getByText("1 of 9 rules")).toBeVisible();
  await expect(page).toHaveURL(/plan=pro/);
  await page.getByLabel("Plan").selectOption("rules for every plan");
  await expect(page.getByText("6 of 9 rules")).toBeVisible();
  await page.reload();
  await expect(page.getByText("6 of 9 rules")).toBeVisible();
  await page.getByLabel("Search", { exact: true }).fill("no such thing");
  await page.getByRole("link", { name: "Show all rules" }).click();
  await expect(page.getByText("9 rules", { exact: true })).toBeVisible();
});

test("typing does not change the address with every key", async ({ page }) => {
  await page.clock.install();
  await page.goto("/#/rules");
  const find = page.getByLabel("Search", { exact: true });
  await expect(find).toBeVisible();
  await page.evaluate(() => {
    const replace = history.replaceState.bind(history);
    history.replaceState = (...changed) => {
      document.documentElement.dataset["changes"] += "x";
      replace(...changed);
    };
    document.documentElement.dataset["changes"] = "";
  });
  await page.clock.pauseAt(Date.now() + 60_000);
  await find.pressSequentially("login");
  await expect(find).toHaveValue("login");
  await expect(page).not.toHaveURL(/text=/);
  await page.clock.runFor(1000);
  await expect(page).toHaveURL(/text=login$/);
  await expect(page.locator("html")).toHaveAttribute("data-changes", "x");
  // Leaving the field reports the text at once.
  await find.fill("login:");
  await find.blur();
  await expect(page).toHaveURL(/text=login%3A$/);
  await expect(page.locator("html")).toHaveAttribute("data-changes", "xx");
});

test("an address with an invalid rule number is reported", async ({ page }) => {
  for (const query of ["rule=changes", "rule=5/overrides", "history=changes", "history=-1"]) {
    await page.goto(`/#/rules?${query}`);
    await expect(page.getByRole("dialog", { name: "No such rule" })).toBeVisible();
  }
  await page.goto("/#/rules?rule=new&from=changes");
  await expect(page.getByRole("dialog").getByLabel("Key pattern")).toHaveValue("user:{user_id}");
});

test("a slow answer with counts is awaited before the next request", async ({ page, service }) => {
  for (let time = 0; time < 6; time += 1) {
    await service.call("POST", "/v1/check", { ip: "203.0.113.9", endpoint: "/login" });
  }
  await page.clock.install();
  let requests = 0;
  let answer = () => {};
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  await page.route("**/v1/stats", async (route) => {
    requests += 1;
    await answered;
    await route.continue();
  });
  await page.goto("/#/rules");
  await expect.poll(() => requests).toBe(1);
  await page.clock.runFor(12_000);
  expect(requests).toBe(1);
  answer();
  await expect(page.getByRole("row").filter({ hasText: "login:{ip}" })).toContainText("1 denied");
  await page.clock.runFor(6000);
  await expect.poll(() => requests).toBe(2);
});

test("many rules are on several pages", async ({ page, service }) => {
  // With conditions: a request may meet 64 rules.
  const rules = Array.from({ length: 120 }, (_, index) => ({
    key_pattern: `shared:${index}`,
    tokens: 1,
    period: 1,
    conditions: { endpoint: `/${index}` },
  }));
  await service.call("PUT", "/v1/rules", { rules });
  await page.goto("/#/rules");
  await expect(page.getByText("Page 1 of 3")).toBeVisible();
  await page.getByRole("link", { name: "Next" }).click();
  await expect(row(page, "shared:50")).toBeVisible();
  await expect(page).toHaveURL(/page=2/);
  await page.getByLabel("Search", { exact: true }).fill("shared:119");
  await expect(row(page, "shared:119")).toBeVisible();
});

test("without rules the page says that every request is allowed", async ({ page, service }) => {
  await service.call("PUT", "/v1/rules", { rules: [] });
  await page.goto("/#/rules");
  await expect(page.getByText("Every request is allowed.")).toBeVisible();
  await page.getByRole("link", { name: "Create the first rule" }).click();
  await expect(editor(page)).toContainText("New rule");
});

test("a rule is created and in force", async ({ page, service }) => {
  await page.goto("/#/rules");
  await page.getByRole("link", { name: "New rule" }).click();
  await page.getByRole("button", { name: "Add a condition on endpoint" }).click();
  await page.getByLabel("Glob 1").fill("/export");
  await page.getByLabel("Counted per", { exact: true }).selectOption("IP address");
  await expect(page.getByLabel("Key pattern")).toHaveValue("ip:{ip}");
  await page.getByLabel("Key pattern").fill("export:{ip}");
  await page.getByLabel("Burst", { exact: true }).fill("2");
  await page.getByLabel("Tokens").fill("1");
  await page.getByLabel("Period: unit").selectOption("day");
  await page.getByLabel("Plans").selectOption("the plan named");
  await editor(page).getByLabel("Plan", { exact: true }).fill("trial");
  await expect(page.getByLabel("Effect")).toContainText(
    "Each IP address may send 2 at once, then 1 per day; an empty bucket is full again after 2 d.",
  );
  await page.getByRole("button", { name: "Create rule" }).click();
  await expect(page.getByText("In force here at once, in other processes within two seconds.")).toBeVisible();
  await expect(editor(page)).toHaveCount(0);
  await expect(row(page, "export:{ip}")).toContainText("burst 2, refilling 1 per day");
  const request = { ip: "203.0.113.9", endpoint: "/export", plan: "trial" };
  expect(await verdicts(service, request, 3)).toEqual([true, true, false]);
  await expect(row(page, "export:{ip}")).toContainText("1 denied");
});

test("changing a rule keeps its other columns to the microsecond", async ({ page, service }) => {
  const made = await service.call<{ rule_id: number }>("POST", "/v1/rules", {
    key_pattern: "odd:{tenant}",
    tokens: 3,
    period: "62.500001s",
    burst_capacity: 1,
    on_error: "deny",
    name: "odd",
    scope: "user",
    conditions: { endpoint: "/api/** !/api/a|/api/b", method: "!GET|HEAD" },
  });
  const path = `/v1/rules/${made.rule_id}`;
  const before = await service.call<object>("GET", path);
  await page.goto(`/#/rules?rule=${made.rule_id}`);
  // Reading a rule into the form does not change it.
  await expect(editor(page)).toContainText("No changes");
  await expect(page.getByRole("button", { name: "Save" })).toBeDisabled();
  await page.getByLabel("Burst", { exact: true }).fill("4");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(editor(page)).toHaveCount(0);
  expect(await service.call("GET", path)).toEqual({ ...before, burst_capacity: 4, version: 2 });
});

test("a rule is duplicated", async ({ page, service }) => {
  await page.goto("/#/rules");
  await menu(page, 5, "Duplicate");
  // A duplicate is refused at the field, with a link to the conflicting rule.
  await expect(page.getByRole("alert")).toContainText("rule 5 has the same key pattern and plan");
  await expect(page.getByRole("link", { name: "Open rule 5" })).toBeVisible();
  await page.getByLabel("Key pattern").fill("login-of:{user_id}");
  await expect(page.getByRole("alert")).toHaveCount(0);
  await page.getByRole("button", { name: "Create rule" }).click();
  await expect(row(page, "login-of:{user_id}")).toContainText("burst 5, refilling 5 per minute");
  expect(await verdicts(service, { user_id: "1", endpoint: "/login" }, 6)).toEqual([
    true,
    true,
    true,
    true,
    true,
    false,
  ]);
});

test("a rule is deactivated and activated", async ({ page, service }) => {
  const request = { ip: "203.0.113.9", endpoint: "/login" };
  expect((await verdicts(service, request, 6)).at(-1)).toBe(false);
  await page.goto("/#/rules");
  const toggle = page.getByRole("switch", { name: "Rule 5 active" });
  await expect(toggle).toBeChecked();
  await toggle.click();
  await expect(toggle).not.toBeChecked();
  await expect(page.getByText("Rule 5 deactivated")).toBeVisible();
  expect(await verdicts(service, request, 1)).toEqual([true]);
  await toggle.click();
  await expect(toggle).toBeChecked();
  expect(await verdicts(service, request, 1)).toEqual([false]);
});

test("deleting a rule asks for confirmation and mentions its overrides", async ({ page, service }) => {
  const request = { ip: "203.0.113.9", endpoint: "/login" };
  for (const subject of ["203.0.113.1", "203.0.113.2"]) {
    await service.call("POST", "/v1/overrides", { rule_id: 5, subject, unlimited: true });
  }
  await page.goto("/#/rules");
  await menu(page, 5, "Delete");
  await expect(page.getByRole("dialog")).toContainText("Its 2 overrides will be deleted");
  await page.getByRole("button", { name: "Cancel" }).click();
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await expect(page.getByRole("button", { name: "Actions for rule 5", exact: true })).toBeFocused();
  await menu(page, 5, "Delete");
  await page.getByRole("button", { name: "Delete rule" }).click();
  await expect(page.getByText("Rule 5 deleted")).toBeVisible();
  await expect(row(page, "login:{ip}")).toHaveCount(0);
  await expect(page.getByRole("heading", { level: 1 })).toBeFocused();
  expect((await verdicts(service, request, 7)).every((allowed) => allowed)).toBe(true);
});

test("a rule is created by keyboard alone", async ({ page }) => {
  const tabTo = async (name: string) => {
    for (let step = 0; step < 60; step += 1) {
      await page.keyboard.press("Tab");
      const focused = await page.evaluate(() => {
        const element = document.activeElement;
        return element?.getAttribute("aria-label") ?? element?.textContent ?? "";
      });
      if (focused.includes(name)) return;
    }
    throw new Error(`no key leads to ${name}`);
  };
  await page.goto("/#/rules");
  await expect(row(page, "global")).toBeVisible();
  await tabTo("New rule");
  await page.keyboard.press("Enter");
  await expect(editor(page)).toBeVisible();
  await tabTo("endpoint");
  await page.keyboard.press("Enter");
  // The focus is in the new condition.
  await expect(page.getByLabel("Glob 1")).toBeFocused();
  await page.keyboard.type("/by-key");
  await tabTo("Key pattern");
  await page.keyboard.press("Control+A");
  await page.keyboard.type("key:{user_id}");
  await tabTo("Tokens");
  await page.keyboard.press("Control+A");
  await page.keyboard.type("7");
  await page.keyboard.press("Enter");
  await expect(editor(page)).toHaveCount(0);
  await expect(row(page, "key:{user_id}")).toContainText("burst 50, refilling 7 per second");
  await expect(page.getByRole("link", { name: "New rule" })).toBeFocused();
});
