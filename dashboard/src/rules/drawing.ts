/** Curve of the most requests that a quota allows from a full bucket on: time and count, each from 0 to 1. */

import { isWindow, type Quota, type RuleForm } from "./form.ts";

export interface Drawing {
  readonly points: readonly (readonly [time: number, count: number])[];
  /** Values of the right edge and of the top. */
  readonly micros: bigint;
  readonly count: bigint;
}

/** Periods of a stepwise curve. */
const PERIODS = 4;

export function drawingOf(form: Pick<RuleForm, "algorithm" | "refill">, quota: Quota): Drawing {
  const { tokens, capacity, periodMicros } = quota;
  if (isWindow(form.algorithm)) return stairs(tokens, tokens, periodMicros);
  if (form.algorithm === "leaky_bucket") return line(0n, tokens, periodMicros, BigInt(PERIODS) * periodMicros);
  if (form.refill === "interval") return stairs(capacity, tokens, periodMicros);
  // The time to full: both the burst and the rate are visible.
  const fill = (capacity * periodMicros) / tokens;
  return line(capacity, tokens, periodMicros, fill > 0n ? fill : 1n);
}

function line(first: bigint, tokens: bigint, period: bigint, micros: bigint): Drawing {
  const grown = (tokens * micros) / period;
  const count = first + (grown > 0n ? grown : 1n);
  const start = ratio(first, count);
  const points: [number, number][] = [
    [0, 0],
    [0, start],
    [1, 1],
  ];
  return { points, micros, count };
}

function stairs(first: bigint, step: bigint, period: bigint): Drawing {
  const micros = BigInt(PERIODS) * period;
  const count = first + BigInt(PERIODS - 1) * step;
  const points: [number, number][] = [[0, 0]];
  for (let index = 0; index < PERIODS; index += 1) {
    const level = ratio(first + BigInt(index) * step, count);
    points.push([index / PERIODS, level], [(index + 1) / PERIODS, level]);
  }
  return { points, micros, count };
}

/** A ratio with twelve digits, more than a screen shows. */
function ratio(part: bigint, whole: bigint): number {
  return Number((part * 1_000_000_000_000n) / whole) / 1e12;
}
