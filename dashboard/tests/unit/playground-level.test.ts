import { expect, test } from "@playwright/test";
import { decisionOf } from "../../src/playground/exchange.ts";
import { laneOf, type Quota, takeBody, tokensPerMs } from "../../src/playground/lane.ts";
import { edgeOf, isLower, levelAt, type Reading, type Spend, waitFor, windowAt } from "../../src/playground/level.ts";
import { dice, FakeService } from "./playground-environment.ts";

function reading(remaining: number, resetAfterMs: number, limit = 10, at = 1000): Reading {
  return { at, limit, remaining, resetAfterMs };
}

test("a continuous bucket refills between answers like that of the service", () => {
  const roll = dice(7);
  for (let round = 0; round < 150; round++) {
    const quota = laneOf("", { capacity: 1 + roll(200), tokens: 1 + roll(300), period: [1, 10, 60][roll(3)]! });
    const service = new FakeService();
    const ask = (cost: number, ms: number) => decisionOf(service.take(takeBody("k", quota, cost), BigInt(ms * 1000)))!;
    const start = 1_700_000_000_000 + roll(100_000);
    const spent = ask(1 + roll(quota.capacity), start);
    const then = reading(spent.remaining, spent.reset_after_ms, spent.limit, start);
    const later = start + roll(20_000);
    const peeked = ask(0, later);
    const level = levelAt(quota, then, [], later);
    // Waits are rounded up to milliseconds: the level may be too low by that much, but never too high.
    const slack = tokensPerMs(quota);
    expect(Math.floor(level + 1e-6)).toBeLessThanOrEqual(peeked.remaining);
    expect(level + slack + 1e-6).toBeGreaterThanOrEqual(peeked.remaining);
    const exact = peeked.limit - peeked.reset_after_ms * tokensPerMs(quota);
    expect(Math.abs(level - Math.max(exact, 0))).toBeLessThanOrEqual(2 * slack + 1e-6);
  }
});

test("reported whole tokens are available despite rounding", () => {
  // At 1000 per second, a millisecond is a whole token.
  const quota = laneOf("", { capacity: 5000, tokens: 1000 });
  expect(levelAt(quota, reading(4999, 2, 5000), [], 1000)).toBe(4999);
});

test("a full bucket stays full", () => {
  expect(levelAt(laneOf(""), reading(10, 0), [], 5000)).toBe(10);
  expect(levelAt(laneOf(""), reading(9, 1000), [], 1_000_000)).toBe(10);
});

test("the wait for a token, for a cost and for all of them", () => {
  const quota = laneOf("");
  const empty = reading(0, 10_000);
  expect(waitFor(quota, empty, [], 1000, 1)).toBeCloseTo(1000, -1);
  expect(waitFor(quota, empty, [], 1400, 3)).toBeCloseTo(2600, -1);
  expect(waitFor(quota, empty, [], 1000, 10)).toBeCloseTo(10_000, -1);
  expect(waitFor(quota, empty, [], 5000, 3)).toBe(0);
  expect(waitFor(quota, empty, [], 1000, 11)).toBeUndefined();
});

test("the search ends for a wait beyond the resolution of the clock", () => {
  const quota = laneOf("", { capacity: 10, tokens: 1e-15 });
  expect(waitFor(quota, reading(0, 1e19), [], 1000, 3)).toBeGreaterThan(1e18);
});

test("at intervals, tokens come all at once and on time", () => {
  const quota = laneOf("", { refill: "interval", tokens: 4, period: 5 });
  // Nine tokens are missing: three refills of four, the last of which fills it. The first comes in 1.5 s.
  const then = reading(1, 11_500);
  const at = (ms: number) => levelAt(quota, then, [], 1000 + ms);
  expect([0, 1499, 1500, 6499, 6500, 11_499, 11_500].map(at)).toEqual([1, 1, 5, 5, 9, 9, 10]);
  expect(waitFor(quota, then, [], 1000, 2)).toBeCloseTo(1500, -1);
});

test("a fixed window keeps its level until its end", () => {
  const quota = laneOf("", { algorithm: "fixed_window", tokens: 10, period: 10 });
  const then = reading(2, 4000);
  expect([0, 3999, 4000].map((ms) => levelAt(quota, then, [], 1000 + ms))).toEqual([2, 2, 10]);
  expect(edgeOf(quota, then)).toBe(5000);
  expect(windowAt(quota, 5000, 1500)).toEqual({ start: -5000, end: 5000 });
  expect(windowAt(quota, 5000, 16_000)).toEqual({ start: 15_000, end: 25_000 });
  expect(windowAt(quota, undefined, 1500)).toBeUndefined();
  expect(edgeOf(quota, reading(10, 0))).toBeUndefined();
  // A sliding counter is full one or two windows later.
  expect(edgeOf({ ...quota, algorithm: "sliding_counter" }, reading(2, 14_000))).toBe(5000);
  expect(edgeOf({ ...quota, algorithm: "sliding_counter" }, reading(2, 4000))).toBe(5000);
});

test("a sliding window returns tokens after one period", () => {
  const quota = laneOf("", { algorithm: "sliding_window", tokens: 10, period: 10 });
  const spends: Spend[] = [
    { at: 0, cost: 3 },
    { at: 500, cost: 2 },
    { at: 900, cost: 1 },
  ];
  const then = reading(4, 9900);
  const at = (ms: number) => levelAt(quota, then, spends, ms);
  expect([1000, 9999, 10_000, 10_499, 10_500, 10_900].map(at)).toEqual([4, 4, 7, 7, 9, 10]);
  expect(waitFor(quota, then, spends, 1000, 5)).toBeCloseTo(9000, -1);
});

test("in a sliding counter the weight of the previous window falls", () => {
  const quota = laneOf("", { algorithm: "sliding_counter", tokens: 10, period: 10 });
  const spends: Spend[] = [
    { at: -5000, cost: 8 },
    { at: 500, cost: 1 },
  ];
  // Windows begin at -10 s, 0 and 10 s. Now, at 1 s: 8 * 0.9 + 1 of 10 are used, and both are over at 20 s.
  const then = reading(1, 19_000);
  const at = (ms: number) => levelAt(quota, then, spends, ms);
  expect(at(1000)).toBeCloseTo(1.8);
  expect(at(6000)).toBeCloseTo(10 - 3.2 - 1);
  expect(at(15_000)).toBeCloseTo(9.5);
  expect(at(20_000)).toBe(10);
});

test("a level never falls as time goes on", () => {
  const roll = dice(3);
  const quotas: Quota[] = [
    laneOf("", { tokens: 3 }),
    laneOf("", { tokens: 3, refill: "interval" }),
    ...(["fixed_window", "sliding_window", "sliding_counter"] as const).map((algorithm) =>
      laneOf("", { algorithm, tokens: 10, period: 3 }),
    ),
  ];
  for (const quota of quotas) {
    const spends = Array.from({ length: 5 }, () => ({ at: 1000 - roll(5000), cost: 1 + roll(2) }));
    const then = reading(roll(9), 1 + roll(2999));
    let before = 0;
    for (let ms = 0; ms < 4000; ms += 37) {
      const level = levelAt(quota, then, spends, 1000 + ms);
      if (level < before - 1e-9 || level > 10) throw new Error(`${quota.algorithm}: ${before}, then ${level}`);
      before = level;
    }
  }
});

test("of overlapping answers, the one with the lower level is newer", () => {
  const quota = laneOf("");
  expect(isLower(quota, reading(3, 7000), reading(5, 5000), [], 1000)).toBe(true);
  expect(isLower(quota, reading(5, 5000), reading(3, 7000), [], 1000)).toBe(false);
  const window = laneOf("", { algorithm: "fixed_window", tokens: 10, period: 10 });
  expect(isLower(window, reading(9, 10_000), reading(9, 5000), [], 1000)).toBe(true);
});
