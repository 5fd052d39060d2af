import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "@playwright/test";
import type axe from "axe-core";
import { expect, type Service, test } from "./service.ts";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Addresses of all views, with their headings. */
const VIEWS: readonly (readonly [string, string])[] = [
  ["playground", "Playground"],
  ["live", "Live"],
  ["rules", "Rules"],
  ["rules?rule=1", "Rules"],
  ["rules?history=all", "Rules"],
  ["live?rule=5&subject=203.0.113.9", "Live"],
  ["explain?user_id=42&ip=203.0.113.9&endpoint=%2Flogin&plan=free&attr.tenant=acme", "Explain"],
  ["explain?ip=nonsense", "Explain"],
  ["violations", "Violations"],
  ["violations?user_id=nobody", "Violations"],
  ["history", "History"],
  ["history?who=nobody", "History"],
  ["callers", "Callers"],
];

/** Creates data for every view. */
async function makeTraffic(service: Service): Promise<void> {
  const login = { user_id: "42", ip: "203.0.113.9", endpoint: "/login", method: "POST", plan: "free" };
  await service.call("POST", "/v1/rules", { key_pattern: "quiet:{ip}", tokens: 1, period: "1 hour", mode: "shadow" });
  await service.call(
    "POST",
    "/v1/check/batch",
    Array.from({ length: 9 }, () => login),
  );
  await service.call("PATCH", "/v1/rules/5", { description: "changed" });
  await service.call("POST", "/v1/callers", { name: "checkout", rights: ["check"], namespace: "a", expires_in: 60 });
  const count = async () => (await service.call<{ violations: unknown[] }>("GET", "/v1/violations")).violations.length;
  await expect.poll(count).toBeGreaterThan(1);
}

/** Accessibility faults of the current page, by element. */
async function faultsOf(page: Page): Promise<string[]> {
  const results = await page.evaluate(async () => {
    const { axe: tool } = globalThis as unknown as { axe: typeof axe };
    return tool.run(document, { resultTypes: ["violations"], rules: { "target-size": { enabled: true } } });
  });
  return results.violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target.join(" ")}: ${failureSummary}`),
  );
}

for (const scheme of ["light", "dark"] as const) {
  test(`no view has a fault, in ${scheme} colours`, async ({ page, service }) => {
    test.slow();
    await makeTraffic(service);
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    for (const [address, title] of VIEWS) {
      // A fresh page for each view.
      await page.goto("about:blank");
      await page.goto(`/#/${address}`);
      await expect(page.getByRole("heading", { level: 1 })).toContainText(title);
      await expect(page.getByText(/^Loading…$/)).toHaveCount(0);
      // Injected, bypassing the content security policy.
      await page.evaluate(AXE);
      expect(await faultsOf(page), address).toEqual([]);
    }
  });
}

test("the sign-in form has no fault", async ({ page }) => {
  const body = JSON.stringify({
    type: "about:blank",
    title: "Unauthorized",
    status: 401,
    detail: "this token is not known",
  });
  await page.route("**/v1/**", (route) => route.fulfill({ status: 401, body }));
  await page.goto("/#/violations");
  await page.getByLabel("Token", { exact: true }).fill("wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByText("this token is not known")).toBeVisible();
  await page.evaluate(AXE);
  expect(await faultsOf(page)).toEqual([]);
});

/** Controls of each view that are visited. */
const STEPS = 25;

test("the tab order follows the reading order in every view", async ({ page, service }) => {
  await makeTraffic(service);
  for (const view of ["playground", "live", "rules", "explain", "violations", "history", "callers"]) {
    await page.goto("about:blank");
    await page.goto(`/#/${view}`);
    await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
    await expect(page.getByText(/^Loading…$/)).toHaveCount(0);
    let last = -1;
    for (let step = 0; step < STEPS; step += 1) {
      await page.keyboard.press("Tab");
      const at = await page.evaluate(() => {
        const focused = document.activeElement;
        if (focused === null || focused === document.body) return undefined;
        const { width, height } = focused.getBoundingClientRect();
        const order = [...document.querySelectorAll("*")].indexOf(focused);
        return { order, name: focused.outerHTML.slice(0, 120), isSeen: width > 0 && height > 0 };
      });
      // After the last control comes the browser's interface. A time input has several tab stops.
      if (at === undefined) break;
      expect(at.isSeen, `${view}: ${at.name} is visible`).toBe(true);
      expect(at.order, `${view}: ${at.name} follows the one before`).toBeGreaterThanOrEqual(last);
      last = at.order;
    }
    expect(last, view).toBeGreaterThan(-1);
  }
});

test("reduced motion disables animations", async ({ page }) => {
  await page.emulateMedia({ reducedMotion: "reduce" });
  for (const view of [
    "playground",
    "live",
    "rules",
    "explain?user_id=42&plan=free",
    "violations",
    "history",
    "callers",
  ]) {
    await page.goto(`/#/${view}`);
    await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
    const moving = await page.evaluate(() =>
      [...document.querySelectorAll("*")]
        .filter((element) => {
          const { animationDuration, transitionDuration } = getComputedStyle(element);
          return [animationDuration, transitionDuration].some((text) => Number.parseFloat(text) > 0.01);
        })
        .map((element) => element.className),
    );
    expect(moving, view).toEqual([]);
  }
});
