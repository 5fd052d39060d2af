/** What the tests of the playground have in common. */

import type { Locator, Page } from "@playwright/test";
import { expect, type Service } from "./service.ts";

export interface Take {
  readonly key: string;
  readonly cost: number;
  readonly [field: string]: unknown;
}

/** What the page asks for, in the order that it does. */
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

/** What the service says is left for the client that asked last, without the page. */
export async function peek(service: Service, take: Take): Promise<number> {
  const answer = await service.call<{ remaining: number }>("POST", "/v1/take", { ...take, cost: 0 });
  return answer.remaining;
}

/** A quota that refills too slowly to matter. */
export const SLOW = "#/playground?l=tb_10_1_3600_c_1_own_Client+1";
