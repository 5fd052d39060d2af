/**
 * Level of a bucket between two answers.
 *
 * An answer has the remaining whole tokens and the time until the bucket is full. Only this page spends from it, so the
 * level until the next answer follows from these, and for two of the windows also from the times of earlier grants.
 */

import { isInterval, isWindow, periodMs, type Quota, tokensPerMs } from "./lane.ts";

/** Figures and arrival time of an answer. All times are milliseconds of one clock. */
export interface Reading {
  readonly at: number;
  readonly limit: number;
  readonly remaining: number;
  readonly resetAfterMs: number;
}

/** Granted tokens. */
export interface Spend {
  readonly at: number;
  readonly cost: number;
}

/** Tolerance below a whole token: sums of fractions are not exact. */
const ROUNDING = 1e-6;

/** Bound of the bisection: distant times have no finer resolution. */
const HALVINGS_MAX = 64;

/** Time at which the bucket is full. */
export function fullAt(reading: Reading): number {
  return reading.at + reading.resetAfterMs;
}

/** The level at `now`, which is not before the reading. Never falls over time. For a leaky bucket: free queue slots. */
export function levelAt(quota: Quota, reading: Reading, spends: readonly Spend[], now: number): number {
  if (now >= fullAt(reading)) return reading.limit;
  if (isInterval(quota)) return intervalLevel(quota, reading, now);
  if (!isWindow(quota)) return continuousLevel(quota, reading, now);
  if (quota.algorithm === "fixed_window") return reading.remaining;
  if (quota.algorithm === "sliding_window") return slidingLevel(quota, reading, spends, now);
  return counterLevel(quota, reading, spends, now);
}

/** Milliseconds from `now` until `tokens` are available, if nothing is spent; undefined above the limit. */
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
  // The level never falls, so bisection finds the time.
  let [before, after] = [now, fullAt(reading)];
  for (let halved = 0; after - before > 0.5 && halved < HALVINGS_MAX; halved++) {
    const middle = (before + after) / 2;
    if (enough(middle)) after = middle;
    else before = middle;
  }
  return after - now;
}

/** Compares two readings of requests that were in flight together: the one with the lower level is newer. */
export function isLower(quota: Quota, one: Reading, other: Reading, spends: readonly Spend[], now: number): boolean {
  const level = levelAt(quota, one, spends, now) - levelAt(quota, other, spends, now);
  return level === 0 ? fullAt(one) > fullAt(other) : level < 0;
}

/** Start and end of a window. */
export interface WindowEdges {
  readonly start: number;
  readonly end: number;
}

/** A boundary of the window of a reading; undefined for algorithms without boundaries, and if nothing was spent. */
export function edgeOf(quota: Quota, reading: Reading): number | undefined {
  const isStanding = quota.algorithm === "fixed_window" || quota.algorithm === "sliding_counter";
  return isStanding && reading.resetAfterMs > 0 ? reading.at + untilEdge(quota, reading) : undefined;
}

/** The window at `now`. Boundaries of fixed windows are whole periods apart from the known one. */
export function windowAt(quota: Quota, edge: number | undefined, now: number): WindowEdges | undefined {
  const length = periodMs(quota);
  if (quota.algorithm === "sliding_window") return { start: now - length, end: now };
  if (edge === undefined) return undefined;
  const start = edge + Math.floor((now - edge) / length) * length;
  return { start, end: start + length };
}

/** The level, corrected for the rounding of `reset_after_ms` within the whole tokens. */
function continuousLevel(quota: Quota, reading: Reading, now: number): number {
  const missing = reading.resetAfterMs * tokensPerMs(quota);
  const then = within(reading.limit - missing, reading.remaining, reading.remaining + 1);
  return Math.min(reading.limit, then + (now - reading.at) * tokensPerMs(quota));
}

/** All tokens of a period come at once, on a grid whose last point is the time at which the bucket is full. */
function intervalLevel(quota: Quota, reading: Reading, now: number): number {
  const left = Math.ceil((fullAt(reading) - now) / periodMs(quota));
  const periods = Math.ceil((reading.limit - reading.remaining) / quota.tokens);
  return Math.min(reading.limit, reading.remaining + Math.max(0, periods - left) * quota.tokens);
}

/** A grant counts for one period. */
function slidingLevel(quota: Quota, reading: Reading, spends: readonly Spend[], now: number): number {
  let level = reading.remaining;
  for (const { at, cost } of spends) {
    const leaves = at + periodMs(quota);
    if (leaves > reading.at && leaves <= now) level += cost;
  }
  return Math.min(reading.limit, level);
}

/** The weight of the previous window falls as the current one advances. */
function counterLevel(quota: Quota, reading: Reading, spends: readonly Spend[], now: number): number {
  const length = periodMs(quota);
  const edge = reading.at + untilEdge(quota, reading);
  const spentFrom = (start: number) =>
    spends.reduce((sum, { at, cost }) => (at >= start && at < start + length ? sum + cost : sum), 0);
  const [previous, current] = [spentFrom(edge - 2 * length), spentFrom(edge - length)];
  const usedAt = (at: number) =>
    at < edge ? (previous * (edge - at)) / length + current : (current * Math.max(0, edge + length - at)) / length;
  const then = reading.limit - usedAt(reading.at);
  // Times are those of answers: near a boundary, the service may have counted a request on the other side.
  const mended = within(then, reading.remaining, reading.remaining + 1) - then;
  return Math.min(reading.limit, reading.limit - usedAt(now) + mended);
}

/** Milliseconds from the reading to the end of its window. A sliding counter is full one or two windows later. */
function untilEdge(quota: Quota, reading: Reading): number {
  const length = periodMs(quota);
  const isTwo = quota.algorithm === "sliding_counter" && reading.resetAfterMs > length;
  return isTwo ? reading.resetAfterMs - length : reading.resetAfterMs;
}

function within(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most);
}
