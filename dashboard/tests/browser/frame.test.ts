import { expect, test } from "./service.ts";

const TITLES = ["Live", "Rules", "Explain", "Violations", "History", "Callers", "Playground"];

test("every view has a tab and its own title", async ({ page }) => {
  await page.goto("/");
  for (const title of TITLES) {
    const tab = page.getByRole("navigation").getByRole("link", { name: title });
    await tab.click();
    await expect(page.getByRole("heading", { level: 1 })).toContainText(title);
    await expect(page).toHaveTitle(`${title} - Sluicegate`);
    await expect(tab).toHaveAttribute("aria-current", "page");
  }
});

test("nothing is wider than the window", async ({ page }) => {
  await page.goto("/");
  for (const title of TITLES) {
    const tab = page.getByRole("navigation").getByRole("link", { name: title });
    await expect(tab).toBeInViewport({ ratio: 1 });
    await tab.click();
    await expect(page.getByRole("heading", { level: 1 })).toContainText(title);
    const [page_, window_] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    expect(page_, title).toBeLessThanOrEqual(window_!);
  }
});

test("nothing is wider than a window of any width", async ({ page }) => {
  for (const width of [360, 640, 820, 1024]) {
    await page.setViewportSize({ width, height: 800 });
    for (const view of [
      "playground",
      "live",
      "rules",
      "rules?rule=1",
      "explain?user_id=42&plan=free",
      "violations",
      "history",
      "callers",
    ]) {
      await page.goto(`/#/${view}`);
      await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
      const widest = () => page.evaluate(() => document.documentElement.scrollWidth);
      await expect.poll(widest, { message: `${view} at ${width}` }).toBeLessThanOrEqual(width);
    }
  }
});

test("changing the view by keyboard focuses its heading", async ({ page }) => {
  await page.goto("/#/explain");
  await expect(page.getByRole("heading", { level: 1 })).toContainText("Explain");
  await page.getByRole("link", { name: "Violations" }).focus();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { level: 1, name: "Violations" })).toBeFocused();
  await page.keyboard.press("Tab");
  await expect(page.getByRole("button", { name: "Export CSV" })).toBeFocused();
});

test("the tabs can be skipped", async ({ page }) => {
  await page.goto("/#/explain");
  await page.keyboard.press("Tab");
  const skip = page.getByRole("button", { name: "Skip to content" });
  await expect(skip).toBeFocused();
  await expect(skip).toBeInViewport();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("main")).toBeFocused();
  await page.keyboard.press("Tab");
  await expect(page.getByRole("main").locator(":focus")).toHaveCount(1);
});

test("a view that fails is reported and can be tried again", async ({ page }) => {
  let answer: string | undefined = '{"allowed":true,"cost":1,"rules":null,"more":0}';
  await page.route("**/v1/explain", (route) =>
    answer === undefined ? route.continue() : route.fulfill({ body: answer }),
  );
  await page.goto("/#/explain?user_id=42");
  await expect(page.getByRole("heading", { name: "This view failed" })).toBeVisible();
  answer = undefined;
  await page.getByRole("button", { name: "Try again" }).click();
  await expect(page.getByText("Would be allowed")).toBeVisible();
  await expect(page.getByLabel("User id")).toHaveValue("42");
});

test("light or dark can be chosen, and is kept", async ({ page }) => {
  await page.goto("/#/explain");
  const background = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const button = page.getByRole("button", { name: /^Colours/ });
  await button.click();
  await expect(button).toHaveAccessibleName("Colours: Dark");
  const dark = await background();
  await button.click();
  await expect(button).toHaveAccessibleName("Colours: Light");
  expect(await background()).not.toBe(dark);
  await page.reload();
  await expect(button).toHaveAccessibleName("Colours: Light");
});

test("the footer links to the API, metrics and health", async ({ page, service }) => {
  await page.goto("/#/explain");
  const links = page.getByRole("contentinfo").getByRole("link");
  await expect(links).toHaveCount(3);
  for (const link of await links.all()) {
    const path = await link.getAttribute("href");
    expect((await service.request("GET", path!)).status, path!).toBe(200);
  }
});
