/** Player of scenario steps. */

import type { LaneState } from "./lane-state.ts";
import type { Step } from "./scenarios.ts";

/** Clock, replaced in tests. */
export interface Clock {
  /** Time in milliseconds, since the page was opened. */
  now(): number;
  /** Resolves after `ms`, or when the signal is aborted. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** Clock of the page. */
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

/** Runs each step at its time, counted from `zero`; late steps run at once. Returns whether all were run. */
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

/** Time between the first and the last step. */
export function durationOf(steps: readonly Step[]): number {
  return (steps.at(-1)?.at ?? 0) - (steps[0]?.at ?? 0);
}

/** Time 0 at a window boundary, late enough for the first step. `untilEdge` is the time from `now` to the next one. */
export function zeroAtEdge(steps: readonly Step[], now: number, untilEdge: number, period: number): number {
  const lead = -(steps[0]?.at ?? 0) + LEAD_MS;
  const missed = Math.max(0, Math.ceil((lead - untilEdge) / period));
  return now + untilEdge + missed * period;
}

/** Returns whether a lane got fewer answers before the boundary than it sent requests. */
export function hasMissedEdge(
  steps: readonly Step[],
  edge: number,
  states: readonly Pick<LaneState, "history">[],
): boolean {
  return states.some(({ history }, index) => {
    const own = steps.filter(({ at, lane }) => at < 0 && (lane === undefined || lane === index));
    const sent = own.reduce((sum, { count }) => sum + count, 0);
    return history.marks.filter(({ at }) => at < edge).length < sent;
  });
}

/** Time reserved before the first step. */
const LEAD_MS = 300;
