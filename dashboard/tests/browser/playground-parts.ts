/** Helpers for tests of the playground. */

import type { Locator, Page } from "@playwright/test";
import { expect, type Service } from "./service.ts";

export interface Take {
  readonly key: string;
  readonly cost: number;
  readonly [field: string]: unknown;
}

/** Records the requests of the page in order. */
export function watchTakes(page: Page): Take[] {
  const takes: Take[] = [];
  page.on("request", (request) => {
    if (request.url().includes("/v1/take")) takes.push(request.postDataJSON() as Take);
  });
  return takes;
}

export function client(page: Page, name: string): Locator {
  return page.getByRole("region", { name, exact: true });
}

export function send(page: Page): Locator {
  return page.getByRole("button", { name: "Send one", exact: true }).and(page.locator(".primary"));
}

export async function counts(lane: Locator, allowed: number, denied: number): Promise<void> {
  await expect(lane.locator(".badge.allowed")).toHaveText(`✓ ${allowed} allowed`);
  await expect(lane.locator(".badge.denied")).toHaveText(`✗ ${denied} denied`);
}

/** Asks the service, bypassing the page, for the tokens left in the bucket of `take`. */
export async function peek(service: Service, take: Take): Promise<number> {
  const answer = await service.call<{ remaining: number }>("POST", "/v1/take", { ...take, cost: 0 });
  return answer.remaining;
}

/** A quota that refills too slowly to affect a test. */
export const SLOW = "#/playground?l=tb_10_1_3600_c_1_own_Client+1";
