/** Plays steps at their times. */

import type { LaneState } from "./lane-state.ts";
import type { Step } from "./scenarios.ts";

/** Time, so that tests need none. */
export interface Clock {
  /** Milliseconds. */
  now(): number;
  /** Ends after so long, or as soon as the signal is given. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** The time of the page. */
export const PAGE_CLOCK: Clock = {
  now: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((done) => {
      const end = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", end);
        done();
      };
      const timer = setTimeout(end, ms);
      signal.addEventListener("abort", end);
      if (signal.aborted) end();
    }),
};

/**
 * Does each step when its time has come, counted from `zero`; steps that are late are done at once. The answer is whether
 * all were done.
 */
export async function play(
  steps: readonly Step[],
  zero: number,
  clock: Clock,
  act: (step: Step) => void,
  signal: AbortSignal,
): Promise<boolean> {
  for (const step of steps) {
    const wait = zero + step.at - clock.now();
    if (wait > 0) await clock.sleep(wait, signal);
    if (signal.aborted) return false;
    act(step);
  }
  return true;
}

/** How long the steps take from the first to the last. */
export function durationOf(steps: readonly Step[]): number {
  return (steps.at(-1)?.at ?? 0) - (steps[0]?.at ?? 0);
}

/**
 * Where time 0 has to be, so that it is at an edge and the first step is not in the past: `untilEdge` is how far the
 * next edge is from `now`.
 */
export function zeroAtEdge(steps: readonly Step[], now: number, untilEdge: number, period: number): number {
  const lead = -(steps[0]?.at ?? 0) + LEAD_MS;
  const missed = Math.max(0, Math.ceil((lead - untilEdge) / period));
  return now + untilEdge + missed * period;
}

/** Whether a lane has had fewer answers before the edge than the steps before it asked for: some ran past it. */
export function hasMissedEdge(
  steps: readonly Step[],
  edge: number,
  states: readonly Pick<LaneState, "history">[],
): boolean {
  return states.some(({ history }, index) => {
    const own = steps.filter(({ at, lane }) => at < 0 && (lane === undefined || lane === index));
    const asked = own.reduce((sum, { count }) => sum + count, 0);
    return history.marks.filter(({ at }) => at < edge).length < asked;
  });
}

/** What is left to get ready before the first step. */
const LEAD_MS = 300;
