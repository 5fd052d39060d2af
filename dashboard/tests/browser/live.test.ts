import type { Page } from "@playwright/test";
import { visible } from "../../src/ui/visible.ts";
import { expect, type Service, test } from "./service.ts";

/** More logins than the starter rules allow at once. */
const LOGINS = 12;

async function logIn(service: Service, ip: string, times = LOGINS): Promise<void> {
  const requests = Array.from({ length: times }, () => ({ ip, endpoint: "/login" }));
  await service.call("POST", "/v1/check/batch", requests);
}

async function openLive(page: Page, address = "/#/live"): Promise<void> {
  await page.goto(address);
  await expect(page.getByText("Live", { exact: true }).and(page.getByRole("status"))).toBeVisible();
  await expect(page.getByRole("heading", { name: "Top limited subjects" })).toBeVisible();
}

test("traffic is shown by tier, by rule, and in the list of limited subjects", async ({ page, service }) => {
  await openLive(page);
  await logIn(service, "203.0.113.9");
  await expect(page.getByRole("heading", { name: "Decisions per second" })).toBeVisible();
  await expect(page.getByRole("img", { name: /^Granted decisions per second.*by tier/ })).toBeVisible();
  await expect(page.getByRole("img", { name: /^Denied decisions per second.*by tier/ })).toBeVisible();

  const limited = page.getByRole("region", { name: "Top limited subjects" });
  await expect(limited.getByRole("link", { name: "203.0.113.9" })).toBeVisible();
  await expect(limited).toContainText("7 denied");
  await expect(limited).toContainText("/login");

  const rules = page.getByRole("region", { name: "Active rules" });
  const login = rules.getByRole("row", { name: /login:\{ip\}/ });
  await expect(login).toContainText("enforce");
  await expect(login.getByRole("link")).toHaveAttribute("href", "#/rules?rule=5");
  await expect(rules.getByRole("row", { name: /global/ })).toBeVisible();

  await page.getByRole("radio", { name: "By rule" }).check();
  await expect(page.getByRole("radio", { name: "By rule" })).toBeChecked();
  await expect(page.getByRole("img", { name: /^Denied decisions per second.*by rule/ })).toBeVisible();
  await expect(page.getByRole("region", { name: "Decisions per second" })).toContainText("5 login:{ip}");
  await page.reload();
  await expect(page.getByRole("radio", { name: "By rule" })).toBeChecked();
});

test("charts have the colours of the page, also where motion is reduced", async ({ page, service }) => {
  await page.emulateMedia({ reducedMotion: "reduce" });
  await openLive(page);
  await logIn(service, "203.0.113.9");
  const chart = page.getByRole("img", { name: /^Denied decisions per second/ }).locator("canvas");
  await expect(chart).toBeVisible();
  const isColoured = () =>
    chart.evaluate((canvas: HTMLCanvasElement) => {
      const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
      // Only bars have a colour; the rest is grey.
      for (let at = 0; at < data.length; at += 4) {
        const [red, green, blue, alpha] = data.slice(at, at + 4);
        if (alpha === 255 && Math.max(red!, green!, blue!) - Math.min(red!, green!, blue!) > 60) return true;
      }
      return false;
    });
  await expect.poll(isColoured).toBe(true);
});

test("headline figures follow the traffic", async ({ page, service }) => {
  await openLive(page);
  await logIn(service, "203.0.113.9");
  const figures = page.locator("dl").first();
  await expect(figures.locator("div", { hasText: /^Denied/ })).toContainText(/^Denied[\d.]*[1-9][\d.]*\/s/);
  await expect(figures.locator("div", { hasText: /^Latency/ })).toContainText("µs");
  await expect(figures).toContainText("OK");
});

test("the empty state says how to send requests", async ({ page }) => {
  await openLive(page);
  const empty = page.getByRole("region", { name: "No requests in the last two minutes" });
  await expect(empty.getByRole("link", { name: "playground" })).toHaveAttribute("href", "#/playground");
  await expect(empty).toContainText("curl -H");
  await expect(empty).toContainText("spend tokens");
  await empty.getByRole("button", { name: /^Send 20/ }).click();
  await expect(page.getByRole("status").filter({ hasText: /Sent 20 requests: \d+ allowed, \d+ denied/ })).toBeVisible();
  await expect(page.getByRole("region", { name: "Top limited subjects" })).toContainText("203.0.113.9");
  await expect(empty).toBeHidden();
});

test("text chosen by users is shown as text only", async ({ page, service }) => {
  const dialogs: string[] = [];
  page.on("dialog", (dialog) => {
    dialogs.push(dialog.message());
    void dialog.dismiss();
  });
  await service.call("POST", "/v1/rules", { key_pattern: "evil:{user_id}", tokens: 1, period: "1 hour" });
  await service.call("POST", "/v1/rules", {
    key_pattern: "<img src=x onerror=alert(1)>",
    tokens: 1000,
    period: 1,
    mode: "shadow",
  });
  await openLive(page, "/#/live?by=rule");
  const hostile = [
    "<img src=x onerror=alert(2)>",
    '"></script><script>alert(3)</script>',
    "\u202egnp.exe \u2066\u200f",
    `long ${"x".repeat(240)}`,
    "javascript:alert(4)",
    "  ",
    " \u00a0 \u3000\u2800\u3164",
  ];
  for (const text of hostile) {
    const request = { user_id: text, endpoint: `/${text}` };
    await service.call("POST", "/v1/check/batch", [request, request, request]);
  }
  const limited = page.getByRole("region", { name: "Top limited subjects" });
  for (const text of hostile) {
    await expect(limited.locator("a.key").getByText(visible(text), { exact: true })).toHaveCount(1);
    await expect(limited.locator(".limited-about").getByText(visible(`/${text}`), { exact: true })).toHaveCount(1);
  }
  await expect(page.getByRole("region", { name: "Active rules" })).toContainText("<img src=x onerror=alert(1)>");
  await expect(page.getByRole("region", { name: "Decisions per second" })).toContainText("<img src=x");
  for (const link of await page.locator("main a").all()) {
    expect(await link.getAttribute("href")).toMatch(/^#\//);
  }
  expect(await page.locator("main :is(img, script)").count()).toBe(0);
  const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(width).toBeLessThanOrEqual(0);

  await limited.getByRole("link", { name: hostile[0]!, exact: true }).click();
  await expect(page.getByRole("dialog")).toContainText("0 of 1 tokens left");
  await expect(page.getByRole("dialog").getByRole("heading", { level: 2 })).toContainText(hostile[0]!);
  expect(dialogs).toEqual([]);
});

test("the utilisation of a shared tier follows its bucket", async ({ page, service }) => {
  await service.call("POST", "/v1/rules", { key_pattern: "batch", tokens: 1, period: "1 day", burst_capacity: 10 });
  await openLive(page);
  const shared = page.getByRole("region", { name: "Shared tiers" });
  const batch = shared.getByRole("listitem").filter({ hasText: "batch" });
  await expect(batch).toContainText("0 %");
  await expect(batch).toContainText("10 of 10 tokens left");
  await service.call("POST", "/v1/check", { cost: 4 });
  await expect(batch).toContainText("40 %");
  await expect(batch).toContainText("6 of 10 tokens left");
  await service.call("POST", "/v1/check", { cost: 6 });
  await expect(batch).toContainText("100 %");
});

test("a shared tier shows how much of its rate is used, though its bucket is nearly full", async ({
  page,
  service,
}) => {
  await service.call("POST", "/v1/rules", { key_pattern: "batch", tokens: 100, period: 1, burst_capacity: 100_000 });
  await openLive(page);
  const batch = page.getByRole("region", { name: "Shared tiers" }).getByRole("listitem").filter({ hasText: "batch" });
  await expect(batch).toContainText("0 of 100 requests per second, 0 %");
  await service.call(
    "POST",
    "/v1/check/batch",
    Array.from({ length: 100 }, () => ({ user_id: "ann" })),
  );
  await expect(batch).toContainText("of its rate");
  await expect(batch).toContainText(/[1-9]\d* of 100 requests per second, [1-9]\d* %/);
});

test("rules in shadow mode are marked", async ({ page, service }) => {
  await service.call("POST", "/v1/rules", { key_pattern: "try:{user_id}", tokens: 1, period: "1 day", mode: "shadow" });
  await openLive(page);
  await service.call("POST", "/v1/check/batch", [{ user_id: "ann" }, { user_id: "ann" }, { user_id: "ann" }]);
  const limited = page.getByRole("region", { name: "Top limited subjects" });
  const row = limited.getByRole("listitem").filter({ hasText: "ann" });
  await expect(limited).toContainText("No denials in the last minute.");
  await expect(limited.getByRole("heading", { name: "Would be denied (shadow)" })).toBeVisible();
  await expect(row).toContainText("shadow");
  await expect(row).toContainText("2 would be denied");
  const rule = page.getByRole("region", { name: "Active rules" }).getByRole("row", { name: /try:\{user_id\}/ });
  await expect(rule).toContainText("shadow");
});

test("enforced denials come before those in shadow mode", async ({ page, service }) => {
  await service.call("POST", "/v1/rules", { key_pattern: "try:{user_id}", tokens: 1, period: "1 day", mode: "shadow" });
  await openLive(page);
  await service.call(
    "POST",
    "/v1/check/batch",
    Array.from({ length: 20 }, () => ({ user_id: "ann" })),
  );
  await logIn(service, "203.0.113.9");
  const rows = page.getByRole("region", { name: "Top limited subjects" }).getByRole("listitem");
  await expect(rows).toHaveCount(2);
  await expect(rows.first()).toContainText("7 denied");
  await expect(rows.last()).toContainText("19 would be denied");
});

test("an error answer is not a lost connection, and a refusal is not retried", async ({ page }) => {
  let requests = 0;
  let status = 503;
  await page.route("**/v1/events", (route) => {
    requests += 1;
    return route.fulfill({
      status,
      json: { status, detail: status === 503 ? "too many watch already" : "not for you" },
    });
  });
  await page.goto("/#/live");
  await expect(page.getByText("Live data is not available: too many watch already.")).toBeVisible();
  await expect(page.getByText("reconnecting")).toBeVisible();
  await expect(page.getByText("Connection lost")).toBeHidden();
  status = 403;
  await page.getByRole("button", { name: "Reconnect" }).click();
  await expect(page.getByText("Access denied: not for you.")).toBeVisible();
  await expect(page.getByText("reconnecting")).toBeHidden();
  const before = requests;
  await page.getByRole("button", { name: "Reconnect" }).click();
  await expect.poll(() => requests).toBe(before + 1);
});

test("a pause freezes the display, and resuming shows what came meanwhile", async ({ page, service }) => {
  await openLive(page);
  await page.getByRole("button", { name: "Pause" }).click();
  await expect(page.getByRole("status").filter({ hasText: "Paused" })).toBeVisible();
  await logIn(service, "203.0.113.9");
  // The statistics show that the requests were counted.
  await expect(async () => {
    const { rules } = await service.call<{ rules: { granted: number }[] }>("GET", "/v1/stats");
    expect(rules.some(({ granted }) => granted > 0)).toBe(true);
  }).toPass();
  await expect(page.getByRole("heading", { name: "No requests in the last two minutes" })).toBeVisible();
  await page.getByRole("button", { name: "Resume" }).click();
  await expect(page.getByRole("region", { name: "Top limited subjects" })).toContainText("203.0.113.9");
});

test("a lost connection is reported, and can be reconnected", async ({ page, service }) => {
  await openLive(page);
  await service.halt();
  await expect(page.getByText(/^Connection lost: /)).toBeVisible();
  await expect(page.getByText("reconnecting")).toBeVisible();
  await expect(page.getByRole("heading", { name: "Shared tiers" })).toBeVisible();
  await service.resume();
  await page.getByRole("button", { name: "Reconnect" }).click();
  await expect(page.getByText(/^Connection lost: /)).toBeHidden();
  await logIn(service, "203.0.113.9");
  await expect(page.getByRole("region", { name: "Top limited subjects" })).toContainText("203.0.113.9");
});

test("a lost connection reconnects by itself", async ({ page, service }) => {
  await openLive(page);
  await service.halt();
  await expect(page.getByText(/^Connection lost: /)).toBeVisible();
  await service.resume();
  await expect(page.getByText(/^Connection lost: /)).toBeHidden({ timeout: 20_000 });
});

test.describe("with a token", () => {
  const token = "a-token-that-is-long-enough-for-tests";
  test.use({ settings: { SLUICEGATE_ADMIN_TOKEN: token } });

  test("the stream is read with the token", async ({ page, service }) => {
    await page.goto("/#/live");
    await page.getByLabel("Token").fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await expect(page.getByRole("heading", { name: "Top limited subjects" })).toBeVisible();
    await logIn(service, "203.0.113.9");
    await expect(page.getByRole("region", { name: "Top limited subjects" })).toContainText("203.0.113.9");
    expect(page.url()).not.toContain(token);
  });
});

test.describe("with a store that does not answer", () => {
  // A port without a listener.
  test.use({ settings: { SLUICEGATE_STORE_URL: "redis://127.0.0.1:1" } });

  test("degraded decisions are reported and explained", async ({ page, service }) => {
    await openLive(page);
    await logIn(service, "203.0.113.9");
    await expect(page.locator("dl").first()).toContainText("Degraded");
    await expect(page.getByRole("region", { name: "State" })).toContainText("Each rule is decided by its on_error");
    const shared = page.getByRole("region", { name: "Shared tiers" });
    await expect(shared).toContainText("The store does not answer.");
    await page.getByRole("link", { name: "203.0.113.9" }).click();
    await expect(page.getByRole("dialog").getByRole("alert")).toContainText("the store is unavailable");
  });
});
