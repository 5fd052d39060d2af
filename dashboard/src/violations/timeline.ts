/** Timeline of violations: denials per slot of time. */

import type { Violation } from "../api/types.ts";

/** The most slots. */
export const SLOTS_MAX = 60;
/** The fewest slots: a single bar would fill the chart. */
const SLOTS_MIN = 15;

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;
/** Slot lengths in seconds, with their names. A violation covers one minute, so no slot is shorter. */
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
  /** Name of the slot's length. */
  readonly per: string;
  /** Length of a slot in seconds. */
  readonly seconds: number;
  /** Start of each slot, in Unix seconds. */
  readonly starts: readonly number[];
  /** Denials in each slot. */
  readonly enforced: readonly number[];
  /** Denials in shadow mode in each slot. */
  readonly shadow: readonly number[];
}

/** The range to draw, in Unix seconds; a missing end is that of the violations. */
export interface Range {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** Assigns violations to slots by their start. */
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

/** Labels of an axis at these Unix seconds, in UTC: the time of day, and the date where it changes. */
export function axisOf(times: readonly number[]): string[] {
  const dates = times.map((time) => new Date(time * 1000).toISOString());
  const isByDay = dates.every((date) => date.slice(11, 16) === "00:00");
  return dates.map((date, index) => {
    const day = date.slice(0, 10);
    if (isByDay) return day;
    return dates[index - 1]?.slice(0, 10) === day ? date.slice(11, 16) : `${date.slice(11, 16)}\n${day.slice(5)}`;
  });
}
