/** Violations over time: how many denials there were in each of a row of slots. */

import type { Violation } from "../api/types.ts";

/** More slots than these are not drawn. */
export const SLOTS_MAX = 60;
/** Fewer would make a wall of a single bar. */
const SLOTS_MIN = 15;

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;
/** How long a slot may be, in seconds, and what that is called. A violation is of one minute: shorter ones make no sense. */
const SIZES: readonly (readonly [number, string])[] = [
  [MINUTE, "minute"],
  [5 * MINUTE, "5 minutes"],
  [15 * MINUTE, "15 minutes"],
  [HOUR, "hour"],
  [4 * HOUR, "4 hours"],
  [DAY, "day"],
  [7 * DAY, "7 days"],
  [30 * DAY, "30 days"],
  [365 * DAY, "year"],
];

export interface Timeline {
  /** How long a slot is, in words. */
  readonly per: string;
  /** Seconds of a slot. */
  readonly seconds: number;
  /** When each slot begins, in Unix seconds. */
  readonly starts: readonly number[];
  /** Denials in each slot, */
  readonly enforced: readonly number[];
  /** and those that would have been. */
  readonly shadow: readonly number[];
}

/** The range to draw, in Unix seconds; what is not given is as the violations have it. */
export interface Range {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** Puts violations into slots by when they began. */
export function timelineOf(violations: readonly Violation[], range: Range): Timeline {
  const times = violations.map(({ requested_at }) => Date.parse(requested_at) / 1000);
  const latest = range.to ?? times.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const earliest = times.reduce((a, b) => Math.min(a, b), range.from ?? latest);
  const [seconds, per] = SIZES.find(([size]) => (latest - earliest) / size < SLOTS_MAX - 1) ?? SIZES.at(-1)!;
  const end = Math.floor(latest / seconds);
  const begin = Math.max(end - SLOTS_MAX + 1, Math.min(Math.floor(earliest / seconds), end - SLOTS_MIN + 1));
  const starts = Array.from({ length: end - begin + 1 }, (_, slot) => (begin + slot) * seconds);
  const enforced = starts.map(() => 0);
  const shadow = starts.map(() => 0);
  violations.forEach(({ mode, count }, index) => {
    const slot = Math.floor(times[index]! / seconds) - begin;
    const counts = mode === "shadow" ? shadow : enforced;
    if (slot >= 0 && slot < counts.length) counts[slot]! += count;
  });
  return { per, seconds, starts, enforced, shadow };
}

export function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}

/** What is written at these Unix seconds of an axis, in UTC: the time of day, and the date wherever that is another one. */
export function axisOf(times: readonly number[]): string[] {
  const dates = times.map((time) => new Date(time * 1000).toISOString());
  const isByDay = dates.every((date) => date.slice(11, 16) === "00:00");
  return dates.map((date, index) => {
    const day = date.slice(0, 10);
    if (isByDay) return day;
    return dates[index - 1]?.slice(0, 10) === day ? date.slice(11, 16) : `${date.slice(11, 16)}\n${day.slice(5)}`;
  });
}
