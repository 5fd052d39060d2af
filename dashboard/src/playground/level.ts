/**
 * What is left in a bucket between two answers.
 *
 * An answer says what is left in whole tokens, and when the bucket is full again. As nobody else spends from it, all
 * that happens until the next answer follows from that, and for two of the windows from what was spent when.
 */

import { isInterval, isWindow, periodMs, type Quota, tokensPerMs } from "./lane.ts";

/** What an answer said, and when it came. All times are milliseconds on one clock. */
export interface Reading {
  readonly at: number;
  readonly limit: number;
  readonly remaining: number;
  readonly resetAfterMs: number;
}

/** Tokens that were granted. */
export interface Spend {
  readonly at: number;
  readonly cost: number;
}

/** Below a whole token by less than this is that token: sums of fractions are not exact here. */
const ROUNDING = 1e-6;

/** More halvings than these find nothing new: times that are far enough away have no half milliseconds. */
const HALVINGS_MAX = 64;

/** When the bucket is full again. */
export function fullAt(reading: Reading): number {
  return reading.at + reading.resetAfterMs;
}

/**
 * What is left at `now`, which is not before the reading. It never falls as time goes on. Of a leaky bucket: how much
 * room there is in the line.
 */
export function levelAt(quota: Quota, reading: Reading, spends: readonly Spend[], now: number): number {
  if (now >= fullAt(reading)) return reading.limit;
  if (isInterval(quota)) return intervalLevel(quota, reading, now);
  if (!isWindow(quota)) return continuousLevel(quota, reading, now);
  if (quota.algorithm === "fixed_window") return reading.remaining;
  if (quota.algorithm === "sliding_window") return slidingLevel(quota, reading, spends, now);
  return counterLevel(quota, reading, spends, now);
}

/** Milliseconds from `now` until `tokens` are left, if nothing is spent; undefined if there are never so many. */
export function waitFor(
  quota: Quota,
  reading: Reading,
  spends: readonly Spend[],
  now: number,
  tokens: number,
): number | undefined {
  if (tokens > reading.limit) return undefined;
  const enough = (at: number) => levelAt(quota, reading, spends, at) >= tokens - ROUNDING;
  if (enough(now)) return 0;
  // The level never falls: halving finds the moment that it gets there.
  let [before, after] = [now, fullAt(reading)];
  for (let halved = 0; after - before > 0.5 && halved < HALVINGS_MAX; halved++) {
    const middle = (before + after) / 2;
    if (enough(middle)) after = middle;
    else before = middle;
  }
  return after - now;
}

/** Which of two readings is the newer truth, where requests were under way at the same time: the one with less left. */
export function isLower(quota: Quota, one: Reading, other: Reading, spends: readonly Spend[], now: number): boolean {
  const level = levelAt(quota, one, spends, now) - levelAt(quota, other, spends, now);
  return level === 0 ? fullAt(one) > fullAt(other) : level < 0;
}

/** Where the current window began and where it ends. */
export interface WindowEdges {
  readonly start: number;
  readonly end: number;
}

/** An edge of the windows that a reading was made in; undefined where they have none, or nothing was spent in them. */
export function edgeOf(quota: Quota, reading: Reading): number | undefined {
  const isStanding = quota.algorithm === "fixed_window" || quota.algorithm === "sliding_counter";
  return isStanding && reading.resetAfterMs > 0 ? reading.at + untilEdge(quota, reading) : undefined;
}

/** The window that `now` lies in. Those that stand still have their edges whole periods away from the one that is known. */
export function windowAt(quota: Quota, edge: number | undefined, now: number): WindowEdges | undefined {
  const length = periodMs(quota);
  if (quota.algorithm === "sliding_window") return { start: now - length, end: now };
  if (edge === undefined) return undefined;
  const start = edge + Math.floor((now - edge) / length) * length;
  return { start, end: start + length };
}

/** The level with the rounding of `reset_after_ms` taken out, as far as the whole tokens tell. */
function continuousLevel(quota: Quota, reading: Reading, now: number): number {
  const missing = reading.resetAfterMs * tokensPerMs(quota);
  const then = within(reading.limit - missing, reading.remaining, reading.remaining + 1);
  return Math.min(reading.limit, then + (now - reading.at) * tokensPerMs(quota));
}

/** All tokens of a period come at once, at the points of a grid. The last of them is when the bucket is full. */
function intervalLevel(quota: Quota, reading: Reading, now: number): number {
  const left = Math.ceil((fullAt(reading) - now) / periodMs(quota));
  const periods = Math.ceil((reading.limit - reading.remaining) / quota.tokens);
  return Math.min(reading.limit, reading.remaining + Math.max(0, periods - left) * quota.tokens);
}

/** What was spent counts for one period. */
function slidingLevel(quota: Quota, reading: Reading, spends: readonly Spend[], now: number): number {
  let level = reading.remaining;
  for (const { at, cost } of spends) {
    const leaves = at + periodMs(quota);
    if (leaves > reading.at && leaves <= now) level += cost;
  }
  return Math.min(reading.limit, level);
}

/** The window before fades as the current one goes on. */
function counterLevel(quota: Quota, reading: Reading, spends: readonly Spend[], now: number): number {
  const length = periodMs(quota);
  const edge = reading.at + untilEdge(quota, reading);
  const spentFrom = (start: number) =>
    spends.reduce((sum, { at, cost }) => (at >= start && at < start + length ? sum + cost : sum), 0);
  const [previous, current] = [spentFrom(edge - 2 * length), spentFrom(edge - length)];
  const usedAt = (at: number) =>
    at < edge ? (previous * (edge - at)) / length + current : (current * Math.max(0, edge + length - at)) / length;
  const then = reading.limit - usedAt(reading.at);
  // Times here are those of answers: near an edge a request may have been counted on its other side.
  const mended = within(then, reading.remaining, reading.remaining + 1) - then;
  return Math.min(reading.limit, reading.limit - usedAt(now) + mended);
}

/** Milliseconds from the reading to the edge of its window. A sliding counter is full one or two edges later. */
function untilEdge(quota: Quota, reading: Reading): number {
  const length = periodMs(quota);
  const isTwo = quota.algorithm === "sliding_counter" && reading.resetAfterMs > length;
  return isTwo ? reading.resetAfterMs - length : reading.resetAfterMs;
}

function within(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most);
}
