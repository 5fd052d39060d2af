import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { client, counts, peek, SLOW, send, watchTakes } from "./playground-parts.ts";
import { expect, test } from "./service.ts";

test("the playground starts with a full bucket, and peeking spends nothing", async ({ page, service }) => {
  const takes = watchTakes(page);
  await page.goto("/");
  await expect(page.getByRole("heading", { level: 1, name: "Playground" })).toBeVisible();
  const lane = client(page, "Client 1");
  await expect(lane.locator(".pg-level-figure")).toHaveText("10.0");
  await expect(page.getByRole("list", { name: "How it works" })).toBeVisible();
  await expect(send(page)).toBeInViewport();
  await expect.poll(() => takes.length).toBeGreaterThan(2);
  expect(takes.filter(({ cost }) => cost !== 0)).toEqual([]);
  expect(await peek(service, takes[0]!)).toBe(10);
});

test("the drawn bucket refills like that of the service", async ({ page, service }) => {
  const takes = watchTakes(page);
  await page.goto("/#/playground?l=tb_10_2_1_c_1_own_Client+1");
  await page.getByRole("button", { name: "Burst ×10" }).click();
  const figure = page.locator(".pg-level-figure");
  await expect(page.locator(".badge.allowed").first()).toHaveText("✓ 10 allowed");
  const level = async () => Number(await figure.textContent());
  const low = await level();
  await expect.poll(level).toBeGreaterThan(low + 1);
  const spending = takes.filter(({ cost }) => cost > 0).length;
  expect(spending).toBe(10);
  await expect(figure).toHaveText("10.0");
  expect(await peek(service, takes[0]!)).toBe(10);
  expect(takes.filter(({ cost }) => cost > 0)).toHaveLength(spending);
});

test("requests pass until the bucket is empty; then the answer is 429 and says when to come back", async ({ page }) => {
  await page.goto(`/${SLOW}`);
  const lane = client(page, "Client 1");
  await send(page).click();
  await counts(lane, 1, 0);
  await expect(page.getByTestId("status")).toHaveText("200 OK");
  await page.getByRole("button", { name: "Burst ×10" }).click();
  await counts(lane, 10, 1);
  await send(page).click();
  await counts(lane, 10, 2);
  await expect(page.getByTestId("status")).toHaveText("429 Too Many Requests");
  await expect(page.getByLabel("Response headers")).toContainText(/retry-after: \d+/);
  await expect(page.getByLabel("Response headers")).toContainText('ratelimit-policy: "take";q=10');
  await expect(page.getByLabel("Response body")).toContainText('"allowed": false');
  await expect(lane.getByText(/A request passes in 5\d min/)).toBeVisible();
  const log = page.getByRole("region", { name: "Last requests" });
  await expect(log.getByRole("row")).toHaveCount(13);
  await expect(log.getByRole("row").nth(1)).toContainText("✗ Denied 429");
  await expect(log.getByText("✓ Allowed")).toHaveCount(10);
  await expect(page.getByRole("img", { name: /Level of Client 1.*10 allowed, 2 denied/ })).toBeVisible();
});

test("the countdown runs out, and then a request passes", async ({ page }) => {
  await page.goto("/#/playground?l=tb_1_1_3_c_1_own_Client+1");
  const lane = client(page, "Client 1");
  await send(page).click();
  await expect(lane.getByText(/A request passes in/)).toBeVisible();
  await send(page).click();
  await counts(lane, 1, 1);
  await expect(lane.getByText("A request passes", { exact: true })).toBeVisible();
  await send(page).click();
  await counts(lane, 2, 1);
});

test("changed figures take effect with the next request", async ({ page }) => {
  const takes = watchTakes(page);
  await page.goto(`/${SLOW}`);
  const lane = client(page, "Client 1");
  await page.getByLabel("Capacity", { exact: true }).fill("2");
  await expect(lane.locator(".pg-level-figure")).toHaveText("2.0");
  await page.getByRole("button", { name: "Burst ×10" }).click();
  await counts(lane, 2, 8);
  // By keyboard, on the slider: from 2 to 3.
  await page.getByLabel("Capacity, as a slider").press("ArrowRight");
  await expect(page.getByLabel("Capacity", { exact: true })).toHaveValue("3");
  await expect(lane.locator(".pg-level-figure")).toHaveText("1.0");
  await send(page).click();
  await counts(lane, 3, 8);
  expect(takes.findLast(({ cost }) => cost > 0)).toMatchObject({ capacity: 3, refill_interval: 3600 });
});

test("an error is shown at its field, and the typed text stays", async ({ page }) => {
  await page.goto("/");
  const capacity = page.getByLabel("Capacity", { exact: true });
  for (const wrong of ["0", "-5", "1.5"]) {
    await capacity.fill(wrong);
    await expect(capacity).toHaveAttribute("aria-invalid", "true");
    await expect(capacity).toHaveValue(wrong);
  }
  await capacity.fill("0");
  await expect(page.getByText("a capacity of zero grants nothing")).toBeVisible();
  await send(page).click();
  await expect(page.getByTestId("status")).toHaveText("400 Bad Request");
  await capacity.fill("7");
  await expect(capacity).toHaveAttribute("aria-invalid", "false");
  await expect(page.locator(".pg-level-figure")).toHaveText("7.0");
  await page.getByLabel("Algorithm").selectOption("fixed_window");
  await page.getByLabel("Limit", { exact: true }).fill("1.5");
  await expect(page.getByText(/need a whole number of tokens per period/)).toBeVisible();
  await page.getByLabel("Limit", { exact: true }).fill("");
  await expect(page.getByText("is not a number")).toBeVisible();
});

test("at intervals, all tokens of a period come at once", async ({ page }) => {
  const takes = watchTakes(page);
  await page.goto("/#/playground?l=tb_10_5_3_c_1_own_Client+1");
  await page.getByLabel("Refill mode").selectOption("interval");
  await page.getByRole("button", { name: "Burst ×10" }).click();
  const lane = client(page, "Client 1");
  await expect(lane.getByText("Next 5 tokens in")).toBeVisible();
  await counts(lane, 10, 0);
  await expect(lane.locator(".pg-level-figure")).toHaveText(/^(0|5|10)$/);
  const seen = new Set<string>();
  await expect
    .poll(async () => {
      const text = (await lane.locator(".pg-level-figure").textContent()) ?? "";
      seen.add(text);
      return text;
    })
    .not.toBe("0");
  expect([...seen].filter((text) => !["0", "5", "10"].includes(text))).toEqual([]);
  expect(takes.at(-1)).toMatchObject({ refill: "interval" });
});

test("one client under three algorithms, side by side", async ({ page }) => {
  const takes = watchTakes(page);
  await page.goto("/");
  await page.getByRole("button", { name: "Compare algorithms" }).click();
  for (const name of ["Token bucket", "Fixed window", "Sliding window"]) await expect(client(page, name)).toBeVisible();
  await page.getByRole("button", { name: "Burst ×10" }).click();
  await expect.poll(() => takes.filter(({ cost }) => cost > 0).length).toBe(30);
  const sent = takes.filter(({ cost }) => cost > 0);
  expect(new Set(sent.map(({ algorithm }) => algorithm))).toEqual(
    new Set([undefined, "fixed_window", "sliding_window"]),
  );
  expect(sent.every(({ refill_rate, refill_interval }) => refill_rate === 10 && refill_interval === 10)).toBe(true);
  await counts(client(page, "Sliding window"), 10, 0);
  await expect(client(page, "Fixed window").getByText("Current window")).toBeVisible();
  const own = client(page, "Sliding window").getByRole("button", { name: "Send one from Sliding window" });
  await own.click();
  await counts(client(page, "Sliding window"), 10, 1);
  await page.getByLabel("Response of").selectOption({ label: "Sliding window" });
  await expect(page.getByTestId("status")).toHaveText("429 Too Many Requests");
});

test("every algorithm can be chosen, and answers", async ({ page }) => {
  await page.goto("/#/playground?l=tb_10_10_3600_c_1_own_Client+1");
  const lane = client(page, "Client 1");
  let sent = 0;
  for (const algorithm of ["sliding_counter", "leaky_bucket", "fixed_window", "sliding_window"]) {
    await page.getByLabel("Algorithm").selectOption(algorithm);
    await send(page).click();
    sent += 1;
    await counts(lane, sent, 0);
    await expect(page.getByLabel("Request as curl")).toContainText(`"algorithm":"${algorithm}"`);
  }
});

test("several clients and plans have buckets of their own", async ({ page }) => {
  await page.goto("/");
  await page.getByLabel("Plan").selectOption("free");
  await expect(page.getByLabel("Capacity", { exact: true })).toHaveValue("50");
  await page.getByRole("button", { name: "Add client" }).click();
  const second = client(page, "Client 2");
  await second.getByText("Token bucket: holds 10").click();
  await second.getByLabel("Plan").selectOption("enterprise");
  await expect(second.getByText("Plan enterprise (example).")).toBeVisible();
  await second.getByLabel("Client name").fill("<b>Big & Co</b>");
  const big = client(page, "<b>Big & Co</b>");
  await page.getByRole("button", { name: "Burst ×10" }).click();
  await counts(client(page, "Client 1"), 10, 0);
  await counts(big, 10, 0);
  await big.getByRole("button", { name: "Send one from" }).click();
  await counts(big, 11, 0);
  await counts(client(page, "Client 1"), 10, 0);
  await page.getByRole("button", { name: "Add client" }).click();
  await page.getByRole("button", { name: "Add client" }).click();
  await expect(page.getByRole("button", { name: "Add client" })).toBeDisabled();
  await page.getByRole("button", { name: "Remove Client 3" }).click();
  await expect(client(page, "Client 3")).toHaveCount(0);
  await expect(page.getByLabel("Client name").first()).toBeFocused();
});

test("a request may cost more than one token, or more than the limit", async ({ page }) => {
  await page.goto(`/${SLOW}`);
  const lane = client(page, "Client 1");
  await page.getByLabel("Cost of a request").fill("4");
  await page.getByRole("button", { name: "Burst ×10" }).click();
  await counts(lane, 2, 8);
  await expect(lane.getByText(/A request with cost 4 passes in/)).toBeVisible();
  await page.getByLabel("Cost of a request").fill("11");
  await send(page).click();
  await expect(lane.getByText("A request with cost 11 can never pass: the limit is 10")).toBeVisible();
  await expect(page.getByText("✗ Never").first()).toBeVisible();
  await expect(page.getByLabel("Response headers")).not.toContainText("retry-after");
});

test("steady traffic goes on at its rate until it is stopped", async ({ page }) => {
  const takes = watchTakes(page);
  await page.goto(`/${SLOW}`);
  await expect(page.locator(".pg-level-figure")).toHaveText("10.0");
  await page.getByLabel("Steady rate, requests per second").fill("20");
  await page.getByRole("button", { name: "▶ Start" }).click();
  const lane = client(page, "Client 1");
  await expect(lane.locator(".badge.allowed")).toHaveText("✓ 10 allowed");
  await expect(lane.locator(".badge.denied")).toHaveText(/[1-9]\d* denied/);
  await page.getByRole("button", { name: "■ Stop" }).click();
  const spent = () => takes.filter(({ cost }) => cost > 0).length;
  const sent = spent();
  const looked = takes.length;
  await expect.poll(() => takes.length).toBeGreaterThan(looked + 1);
  expect(spent()).toBe(sent);
  await expect(page).toHaveURL(/rate=20/);
});

test("starting over fills the buckets and empties the log", async ({ page }) => {
  await page.goto(`/${SLOW}`);
  await page.getByRole("button", { name: "Burst ×10" }).click();
  await counts(client(page, "Client 1"), 10, 0);
  await page.getByRole("button", { name: "Start over" }).click();
  await counts(client(page, "Client 1"), 0, 0);
  await expect(page.locator(".pg-level-figure")).toHaveText("10.0");
  await expect(page.getByText("No requests yet.")).toBeVisible();
});

test("a service that is down is reported, and found again", async ({ page }) => {
  await page.goto("/");
  await expect(page.locator(".pg-level-figure")).toHaveText("10.0");
  await page.route("**/v1/take*", (route) => route.abort());
  await expect(page.getByRole("alert")).toContainText("the service does not answer");
  await send(page).click();
  await expect(page.getByText("? No answer")).toBeVisible();
  await page.unroute("**/v1/take*");
  // The pause between peeks grows; sending a request finds the service at once.
  await send(page).click();
  await counts(client(page, "Client 1"), 1, 0);
  await expect(page.getByRole("alert")).toHaveCount(0);
});

test("a hidden page does not peek, and peeks at once when it is visible", async ({ page }) => {
  let looks = 0;
  page.on("request", (request) => {
    if (request.url().includes("/v1/take")) looks += 1;
  });
  const show = (isShown: boolean) =>
    page.evaluate((isShown) => {
      Object.defineProperty(document, "hidden", { configurable: true, value: !isShown });
      document.dispatchEvent(new Event("visibilitychange"));
    }, isShown);
  await page.clock.install();
  await page.goto("/");
  await expect(page.locator(".pg-level-figure")).toHaveText("10.0");
  await show(false);
  await page.clock.pauseAt(Date.now() + 60_000);
  const before = looks;
  await page.clock.runFor(10_000);
  expect(looks).toBe(before);
  await show(true);
  await expect.poll(() => looks).toBe(before + 1);
});

test("nothing is wider than the screen, and all can be reached by keyboard", async ({ page }) => {
  await page.goto("/#/playground?s=edge");
  await page.getByRole("button", { name: "Burst ×10" }).click();
  await counts(client(page, "Token bucket"), 10, 0);
  const width = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(width).toBeLessThanOrEqual(0);
  await page.goto(`/${SLOW}`);
  await expect(page.locator(".pg-level-figure")).toHaveText("10.0");
  await send(page).focus();
  await page.keyboard.press("Enter");
  await counts(client(page, "Client 1"), 1, 0);
  await page.keyboard.press("Tab");
  await expect(page.getByRole("button", { name: "Burst ×10" })).toBeFocused();
  await page.keyboard.press("Space");
  await counts(client(page, "Client 1"), 10, 1);
});

test("reduced motion shows denials without shaking", async ({ page }) => {
  await page.emulateMedia({ reducedMotion: "reduce" });
  await page.goto("/#/playground?l=tb_1_1_3600_c_1_own_Client+1");
  await page.evaluate(() => {
    const animate = Element.prototype.animate;
    Element.prototype.animate = function (...how: Parameters<typeof animate>) {
      this.ownerDocument.body.dataset["moved"] += ` ${this.getAttribute("class")}`;
      return animate.apply(this, how);
    };
  });
  await page.getByRole("button", { name: "Burst ×10" }).click();
  await counts(client(page, "Client 1"), 1, 9);
  await expect(page.locator("body")).toHaveAttribute("data-moved", /pg-wall/);
  await expect(page.locator("body")).not.toHaveAttribute("data-moved", /pg-shaken/);
});

test("the playground is accessible", async ({ page }) => {
  const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  for (const address of ["/", "/#/playground?s=edge"]) {
    await page.goto(address);
    await page.getByRole("button", { name: "Burst ×10" }).click();
    await expect(page.getByRole("region", { name: "Last requests" })).toBeVisible();
    // Fading texts have too little contrast.
    await expect(page.locator(".pg-float")).toHaveCount(0);
    await page.evaluate(axe);
    const found = await page.evaluate(
      "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes[0].html]))",
    );
    expect(found).toEqual([]);
  }
});
