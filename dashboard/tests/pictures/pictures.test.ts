/** Takes the pictures in `docs/images` from the real binary under light traffic: `npm run pictures`. */

import { test as base, type Page } from "@playwright/test";
import { expect, type Service, test } from "../browser/service.ts";

const IMAGES = "../docs/images";

/** Duration of the traffic before a picture. */
const TRAFFIC_MS = 60_000;

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
