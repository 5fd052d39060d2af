import { expect, test } from "@playwright/test";
import { Problem } from "../../src/api/client.ts";
import { laneOf } from "../../src/playground/lane.ts";
import { LaneState } from "../../src/playground/lane-state.ts";
import { outlook, refillWords, shortCount } from "../../src/playground/words.ts";

function stateOf(remaining?: number): LaneState {
  const state = new LaneState(1, laneOf("A"));
  const resetAfterMs = (10 - (remaining ?? 0)) * 1000;
  if (remaining !== undefined) state.reading = { at: 0, limit: 10, remaining, resetAfterMs };
  return state;
}

test("figures of a scale are short", () => {
  const figures = [0, 2.5, 999, 1000, 2500, 10_000, 12_345, 100_000, 123_456, 999_999, 1_000_000];
  expect(figures.map(shortCount)).toEqual([
    "0",
    "2.5",
    "999",
    "1k",
    "2.5k",
    "10k",
    "12.3k",
    "100k",
    "123k",
    "1M",
    "1M",
  ]);
});

test("only errors about the quota are shown as such", () => {
  const state = stateOf(10);
  const parsed = (status: number, field?: string) => {
    state.problem = new Problem(status, "why", field);
    return outlook(state, 0);
  };
  const isOfSetting = { text: "The service rejects this quota", isPassing: false };
  expect(parsed(400)).toEqual(isOfSetting);
  expect(parsed(400, "capacity")).toEqual(isOfSetting);
  expect(parsed(503)).toEqual({ text: "The service cannot answer now", isPassing: undefined });
  expect(parsed(403)).toEqual({ text: "The service denies access", isPassing: undefined });
});

test("an unknown state is neither passing nor denied", () => {
  expect(outlook(stateOf(), 0)).toEqual({ text: "Loading…", isPassing: undefined });
  expect(outlook(stateOf(10), 0)).toEqual({ text: "A request passes", isPassing: true });
  expect(outlook(stateOf(10), 0, true)).toEqual({ text: "The service does not answer", isPassing: undefined });
});

test("a full bucket has no waits", () => {
  expect(refillWords(stateOf(10), 0)).toBeUndefined();
  expect(refillWords(stateOf(9), 0)).toEqual({ next: "1.0\u00a0s", full: "1.0\u00a0s" });
  expect(refillWords(stateOf(), 0)).toEqual({ next: "–", full: "–" });
});
