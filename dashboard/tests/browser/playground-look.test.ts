import type { Page } from "@playwright/test";
import { client, send } from "./playground-parts.ts";
import { expect, test } from "./service.ts";

const WIDTHS = [390, 768, 1280];

/** Finds texts of the first client that overlap or are cut. */
function collisions(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const lane = document.querySelector(".pg-lane")!;
    const shown = (selector: string) =>
      [...lane.querySelectorAll(selector)].filter((element) => element.getClientRects().length > 0);
    const boxOf = (element: Element) => {
      const range = document.createRange();
      range.selectNodeContents(element);
      return range.getBoundingClientRect();
    };
    const figures = shown(".pg-level-figure, .pg-level .muted, .pg-counts .badge, .pg-passing, .pg-waits dt");
    const others = shown(".pg-quota > *, .pg-vessel");
    const bad = [];
    for (const one of figures) {
      const box = boxOf(one);
      for (const other of others) {
        const room = other.getBoundingClientRect();
        const isApart =
          box.right <= room.left || box.left >= room.right || box.bottom <= room.top || box.top >= room.bottom;
        if (!isApart) bad.push(`"${one.textContent}" lies on ${other.className}`);
      }
    }
    const right = lane.getBoundingClientRect().right;
    for (const input of shown("input, select")) {
      if (input.getBoundingClientRect().right > right) bad.push(`${input.className} is too wide`);
    }
    for (const input of shown(".pg-number") as HTMLInputElement[]) {
      if (input.scrollWidth > input.clientWidth) bad.push(`${input.value} is cut`);
    }
    return bad;
  });
}

test("large figures can be read, at every width", async ({ page }) => {
  await page.goto("/");
  for (const capacity of [10_000, 100_000, 1_000_000]) {
    await page.getByLabel("Capacity", { exact: true }).fill(String(capacity));
    await page.getByLabel("Refill", { exact: true }).fill("65536");
    await expect(page.locator(".pg-level-figure")).toHaveText(capacity.toLocaleString("en"));
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 844 });
      await expect.poll(() => collisions(page), { message: `${capacity} at ${width}` }).toEqual([]);
    }
  }
});

test("an error of the service is not shown as an error of the quota", async ({ page }) => {
  const problem = { status: 503, detail: "the store does not answer" };
  await page.route("**/v1/take*", (route) =>
    route.fulfill({ status: 503, contentType: "application/problem+json", body: JSON.stringify(problem) }),
  );
  await page.goto("/");
  const lane = client(page, "Client 1");
  await expect(lane.getByText("The service cannot answer now")).toBeVisible();
  await expect(lane.getByText("the store does not answer")).toBeVisible();
  await expect(lane.locator(".pg-water")).toBeHidden();
  await page.unroute("**/v1/take*");
  await expect(lane.getByText("A request passes")).toBeVisible();
  await expect(lane.locator(".pg-water")).toBeVisible();
  // A full bucket shows no waits.
  await expect(lane.getByText("Full", { exact: true })).toBeVisible();
  await expect(lane.getByText("Next token in")).toBeHidden();
  await page.route("**/v1/take*", (route) => route.abort());
  await expect(lane.getByText("The service does not answer")).toBeVisible();
});

test("in a low window, the controls do not cover the bucket", async ({ page }) => {
  await page.goto("/");
  await page.setViewportSize({ width: 640, height: 400 });
  await expect(page.getByRole("region", { name: "Traffic" })).toHaveCSS("position", "static");
  await page.setViewportSize({ width: 640, height: 800 });
  await expect(page.getByRole("region", { name: "Traffic" })).toHaveCSS("position", "fixed");
  await expect(send(page)).toBeInViewport();
});
