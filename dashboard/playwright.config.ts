import { defineConfig, devices } from "@playwright/test";

/** Options of Debian's Chromium: no background traffic, no display. */
const launchOptions = {
  executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium-headless-shell",
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
};

const DESKTOP = { ...devices["Desktop Chrome"], viewport: { width: 1280, height: 800 } };
const PHONE = {
  ...devices["Desktop Chrome"],
  viewport: { width: 390, height: 844 },
  hasTouch: true,
  isMobile: true,
};
const LOOKS = ["frame.test.ts", "security.test.ts"];

export default defineConfig({
  forbidOnly: true,
  fullyParallel: true,
  // More than the two cores: tests mostly wait for events.
  workers: 4,
  reporter: [["line"]],
  outputDir: "../target/page-test-results",
  timeout: 30_000,
  expect: { timeout: 7_000 },
  use: { launchOptions, locale: "en-GB", timezoneId: "UTC", trace: "off" },
  projects: [
    { name: "unit", testDir: "tests/unit" },
    { name: "pictures", testDir: "tests/pictures", use: { ...devices["Desktop Chrome"], deviceScaleFactor: 1 } },
    { name: "desktop", testDir: "tests/browser", use: { ...DESKTOP, colorScheme: "light" } },
    { name: "phone", testDir: "tests/browser", use: { ...PHONE, colorScheme: "dark" } },
    // The other colour scheme, for the tests of every view. Accessibility is tested in both schemes anyway.
    { name: "desktop-dark", testDir: "tests/browser", testMatch: LOOKS, use: { ...DESKTOP, colorScheme: "dark" } },
    { name: "phone-light", testDir: "tests/browser", testMatch: LOOKS, use: { ...PHONE, colorScheme: "light" } },
  ],
});
