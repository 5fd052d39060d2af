import { expect, test } from "@playwright/test";
import { Problem } from "../../src/api/client.ts";
import { PAUSE_MAX_MS, pauseAfter } from "../../src/ui/poll.ts";

function pauses(status: number, everyMs: number): number[] {
  const problem = new Problem(status, "", undefined);
  let before = everyMs;
  return Array.from({ length: 5 }, () => {
    before = pauseAfter(problem, everyMs, before);
    return before;
  });
}

test("the pause grows up to a bound while the service is down", () => {
  for (const status of [0, 500, 503]) expect(pauses(status, 2000)).toEqual([4000, 8000, PAUSE_MAX_MS, 15_000, 15_000]);
});

test("a refusal does not change the pause", () => {
  for (const status of [400, 403, 404]) expect(pauses(status, 2000)).toEqual([2000, 2000, 2000, 2000, 2000]);
});

test("a long interval is never shortened", () => {
  expect(pauses(0, 60_000)).toEqual([60_000, 60_000, 60_000, 60_000, 60_000]);
});
