/** Takes the pictures in `docs/images` from the real binary under light traffic: `npm run pictures`. */

import { test as base, type Page } from "@playwright/test";
import { expect, type Service, test } from "../browser/service.ts";

const IMAGES = "../docs/images";

/** Duration of the traffic before a picture. */
const TRAFFIC_MS = 60_000;

/** Time until the last use of a caller is written. */
const LAST_USE_MS = 32_000;

async function take(page: Page, name: string): Promise<void> {
  // Toasts are not part of the picture.
  await expect(page.locator(".toasts .notice")).toHaveCount(0, { timeout: 10_000 });
  await page.screenshot({ path: `${IMAGES}/${name}.png` });
}

/** Sends mixed traffic: users of three plans, a shared search endpoint, and a client that guesses passwords. */
async function send(service: Service, round: number): Promise<void> {
  const plans = ["free", "pro", "enterprise"];
  const requests = Array.from({ length: 40 + Math.round(20 * Math.sin(round / 5)) }, (_, at) => ({
    user_id: `user-${(at * 7 + round) % 23}`,
    plan: plans[at % 3],
    ip: `198.51.100.${1 + ((at * 5 + round) % 40)}`,
    endpoint: at % 2 === 0 ? "/api/search" : "/api/orders",
    cost: at % 3 === 0 ? 4 : 1,
  }));
  const guesses = Array.from({ length: 4 }, () => ({ ip: "203.0.113.9", endpoint: "/login", method: "POST" }));
  const greedy = Array.from({ length: 12 }, () => ({
    user_id: "batch-7",
    plan: "free",
    ip: "198.51.100.77",
    endpoint: "/api/export",
    cost: 3,
  }));
  await service.call("POST", "/v1/check/batch", [...requests, ...guesses, ...greedy].slice(0, 100));
}

base.describe("desktop", () => {
  test.use({ viewport: { width: 1280, height: 860 }, colorScheme: "light" });
  test.setTimeout(90_000);

  test("playground", async ({ page }) => {
    await page.goto("/");
    await page.getByRole("button", { name: "Burst ×10" }).click();
    await page.waitForTimeout(4000);
    for (let sent = 0; sent < 6; sent++) {
      await page.getByRole("button", { name: "Send one" }).first().click();
      await page.waitForTimeout(150);
    }
    await take(page, "playground");
  });

  test("window boundary", async ({ page }) => {
    await page.goto("/");
    await page.getByRole("button", { name: "Window boundary" }).click();
    await page.getByRole("button", { name: "▶ Play" }).click();
    // The fixed window allows both bursts.
    await expect(page.getByText("20 allowed")).toBeVisible({ timeout: 30_000 });
    await page.waitForTimeout(1000);
    await take(page, "window-edge");
  });

  test("rule", async ({ page, service }) => {
    for (let round = 0; round < 10; round++) await send(service, round);
    await page.goto("/#/rules?rule=5");
    await page.getByLabel("Refilling").or(page.getByLabel("tokens")).first().fill("2");
    await page.waitForTimeout(2500);
    await take(page, "rule");
  });
});

base.describe("administration", () => {
  test.use({ viewport: { width: 1280, height: 720 }, colorScheme: "light" });
  test.setTimeout(LAST_USE_MS + 30_000);

  test("callers", async ({ page, service }) => {
    const create = (body: object) => service.call<{ token: string }>("POST", "/v1/callers", body);
    const { token } = await create({ name: "checkout", rights: ["check", "take"], namespace: "team-a" });
    await create({ name: "gateway", rights: ["authorize"], certificate: "gateway.example", expires_in: "90 days" });
    await create({ name: "nightly-import", rights: ["check", "refund"], namespace: "team-b", expires_in: "2 days" });
    await service.request("POST", "/v1/check", { user_id: "42" }, { authorization: `Bearer ${token}` });
    await page.waitForTimeout(LAST_USE_MS);
    await page.goto("/#/callers");
    await expect(page.getByText("in the last minute")).toBeVisible();
    await take(page, "callers");
  });

  test("history", async ({ page, service }) => {
    const act = (method: string, path: string, why: string, body?: object) =>
      service.request(method, path, body, { "x-sluicegate-reason": why });
    await act("POST", "/v1/overrides", "launch day", { rule_id: 1, subject: "42", tokens: 200, period: "1 minute" });
    await act("POST", "/v1/callers", "", { name: "checkout", rights: ["check", "take"], namespace: "team-a" });
    await act("POST", "/v1/buckets/5/203.0.113.9/reset", "customer called, ticket 4711");
    await act("PATCH", "/v1/rules/5", "password guessing from one network", { tokens: 2, description: "Tightened" });
    await page.setViewportSize({ width: 1280, height: 940 });
    await page.goto("/#/history");
    await expect(page.getByText("Rule changed").last()).toBeVisible();
    await take(page, "history");
  });
});

base.describe("desktop, dark", () => {
  test.use({ viewport: { width: 1280, height: 860 }, colorScheme: "dark" });
  test.setTimeout(TRAFFIC_MS + 60_000);

  test("live, a subject and violations", async ({ page, service }) => {
    await page.goto("/#/live");
    const until = Date.now() + TRAFFIC_MS;
    for (let round = 0; Date.now() < until; round++) {
      await send(service, round);
      await page.waitForTimeout(200);
    }
    await take(page, "live");
    await page.goto("/#/live?rule=5&subject=203.0.113.9");
    await page.waitForTimeout(2000);
    await take(page, "subject");
    await page.goto("/#/violations");
    await page.waitForTimeout(2500);
    await take(page, "violations");
    await page.goto("/#/explain?user_id=batch-7&plan=free&ip=203.0.113.9&endpoint=%2Flogin&method=POST");
    await page.waitForTimeout(2000);
    await take(page, "explain");
  });
});

base.describe("phone", () => {
  test.use({ viewport: { width: 390, height: 844 }, colorScheme: "dark", isMobile: true, hasTouch: true });

  test("playground", async ({ page }) => {
    await page.goto("/");
    await page.getByRole("button", { name: "Burst ×10" }).click();
    await page.waitForTimeout(2500);
    await take(page, "phone");
  });
});
