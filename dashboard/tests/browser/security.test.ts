import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "@playwright/test";
import { test as plain } from "@playwright/test";
import { expect, Service, test } from "./service.ts";

/** Text that would run if it were not escaped. */
const HOSTILE = `"><img id=pwned src=x onerror="window.pwned=1"><script>window.pwned=1</script>'\u202e{{7*7}}`;
const SCHEME = "javascript:window.pwned=1";

const test_ = test.extend({
  page: async ({ page }, use) => {
    page.on("dialog", (dialog) => {
      throw new Error(`a dialog was shown: ${dialog.message()}`);
    });
    await page.addInitScript(() => {
      addEventListener("securitypolicyviolation", (event) => {
        console.error(`refused by the policy: ${event.violatedDirective} ${event.blockedURI}`);
      });
    });
    await use(page);
  },
});

async function expectUnharmed(page: Page): Promise<void> {
  expect(await page.evaluate(() => "pwned" in window)).toBe(false);
  await expect(page.locator("#pwned")).toHaveCount(0);
  await expect(page.locator("body script")).toHaveCount(0);
  const schemes = await page.evaluate(() => [...document.querySelectorAll("a")].map((link) => link.protocol));
  expect(schemes.every((scheme) => scheme === "http:")).toBe(true);
}

/** Creates denials by rules on every attribute that clients choose. */
async function makeHostileTraffic(service: Service): Promise<void> {
  const tight = { tokens: 1, period: "1 hour", burst_capacity: 1, description: HOSTILE };
  for (const name of ["user_id", "endpoint", "tenant"]) {
    await service.call("POST", "/v1/rules", { ...tight, key_pattern: `h-${name}:{${name}}` });
  }
  await service.call("POST", "/v1/rules", { ...tight, key_pattern: `<b id=pwned>:{user_id}`, plan: "<i id=pwned>" });
  await service.call("POST", "/v1/overrides", { rule_id: 10, subject: SCHEME, blocked: true, reason: HOSTILE });
  const check = { endpoint: HOSTILE, method: HOSTILE, plan: HOSTILE, attributes: { tenant: HOSTILE } };
  const checks = [HOSTILE, SCHEME, "<i id=pwned>"].flatMap((user_id) =>
    Array.from({ length: 4 }, () => ({ ...check, user_id })),
  );
  await service.call("POST", "/v1/check/batch", checks);
  const count = async () => (await service.call<{ violations: unknown[] }>("GET", "/v1/violations")).violations.length;
  await expect.poll(count).toBeGreaterThan(1);
}

test_("hostile text is text in every view", async ({ page, service }) => {
  test.slow();
  await makeHostileTraffic(service);
  const text = encodeURIComponent(HOSTILE);
  const addresses = [
    "playground",
    `playground?key=${text}&name=${text}&client=${text}`,
    "live",
    `live?rule=10&subject=${text}`,
    `live?rule=10&subject=${encodeURIComponent(SCHEME)}`,
    "rules",
    "rules?rule=10",
    "rules?rule=13",
    `rules?rule=${text}`,
    "rules?history=all",
    `explain?user_id=${text}&endpoint=${text}&method=${text}&plan=${text}&attr.tenant=${text}&attr.${text}=${text}`,
    `explain?ip=${text}&cost=${text}`,
    "violations",
    "violations?by=user_id",
    "violations?by=endpoint",
    `violations?user_id=${text}&endpoint=${text}&rule_id=${text}&mode=${text}&from=${text}&to=${text}&last=${text}&by=${text}`,
    "history",
    `history?act=${text}&who=${text}&rule_id=${text}&subject=${text}&target=${text}&from=${text}&to=${text}&last=${text}`,
    `history?subject=${text}`,
    "rules?history=13",
    "callers",
    `callers?${text}=${text}`,
    `${text}?${text}=${text}`,
  ];
  for (const address of addresses) {
    await page.goto("about:blank");
    await page.goto(`/#/${address}`);
    await expect(page.getByRole("heading", { level: 1 }).first()).toBeVisible();
    await expect(page.getByText(/^Loading…$/)).toHaveCount(0);
    await expectUnharmed(page);
    // Characters that change the text direction are escaped.
    expect(await page.locator("body").innerText()).not.toContain("\u202e");
  }
});

test_("hostile keys are shown as they are", async ({ page, service }) => {
  await makeHostileTraffic(service);
  const shown = "<img id=pwned src=x";
  await page.goto("/#/violations");
  await expect(page.locator(".violations-table tbody tr").filter({ hasText: shown }).first()).toBeVisible();
  const most = page.getByRole("region", { name: "Top offenders" });
  await expect(most.getByRole("link").filter({ hasText: shown }).first()).toBeVisible();
  await most.getByRole("link").filter({ hasText: shown }).first().click();
  await expectUnharmed(page);
  await page.goto(`/#/explain?user_id=${encodeURIComponent(HOSTILE)}`);
  const written = HOSTILE.replace("\u202e", "\\u{202e}");
  await expect(page.getByRole("link", { name: `h-user_id:${written}` })).toBeVisible();
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await expect(page.getByRole("region", { name: "Raw answer" })).toContainText("HTTP 200");
  await expectUnharmed(page);
  await page.getByRole("link", { name: `h-user_id:${written}` }).click();
  await expect(page.getByRole("dialog").getByRole("heading").first()).toContainText(written);
  await expectUnharmed(page);
});

test_("the page comes with a policy that allows nothing but itself", async ({ page, service }) => {
  const response = await service.request("GET", "/");
  const policy = response.headers.get("content-security-policy") ?? "";
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("script-src 'self'");
  expect(policy).toContain("style-src 'self'");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toContain("unsafe");
  expect(policy).not.toContain("data:");
  await page.goto("/");
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  expect(await page.locator("script:not([src]), style, [onclick], [onload]").count()).toBe(0);
});

test_("requests from other origins are refused", async ({ service }) => {
  const foreign = { origin: "http://evil.example" };
  expect((await service.request("GET", "/v1/rules", undefined, foreign)).status).toBe(403);
  expect((await service.request("POST", "/v1/rules", {}, foreign)).status).toBe(403);
  expect((await service.request("POST", "/v1/explain", {}, foreign)).status).toBe(403);
  expect((await service.request("POST", "/v1/check", {}, foreign)).status).toBe(403);
  expect((await service.request("GET", "/v1/violations", undefined, { origin: "null" })).status).toBe(403);
  const answer = await service.request("GET", "/v1/rules");
  expect(answer.status).toBe(200);
  expect(answer.headers.get("access-control-allow-origin")).toBeNull();
});

plain("another site can neither show the page in a frame nor read from it", async ({ page }) => {
  const service = await Service.start();
  const other = createServer((_, response) => {
    response.setHeader("content-type", "text/html");
    response.end(`<iframe src="${service.url}/"></iframe>`);
  });
  await new Promise<void>((listening) => other.listen(0, "127.0.0.1", listening));
  try {
    const refused = page.waitForEvent("console", (message) => message.text().includes("frame-ancestors"));
    await page.goto(`http://127.0.0.1:${(other.address() as AddressInfo).port}/`);
    await refused;
    const read = await page.evaluate(async (url) => {
      const ask = (path: string, init: RequestInit) =>
        fetch(`${url}${path}`, init).then(
          (r) => r.status,
          () => "refused",
        );
      return [
        await ask("/v1/rules", {}),
        await ask("/v1/rules", { method: "DELETE" }),
        await ask("/v1/check", { method: "POST", headers: { "content-type": "application/json" }, body: "{}" }),
      ];
    }, service.url);
    expect(read).toEqual(["refused", "refused", "refused"]);
  } finally {
    other.closeAllConnections();
    other.close();
    await service.stop();
  }
});
