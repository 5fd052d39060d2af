/** The clock of the service, as far as its answers tell: that of the browser may be wrong. */

/** Clocks that are less apart are taken to agree: answers are on their way for a while, and tell whole seconds. */
export const APART_MS_MIN = 10_000;

const listeners = new Set<() => void>();
let aheadMs = 0;

/** Takes note of the `date` of an answer that came at this moment, by the clock of the browser. */
export function noteDate(date: string | null, now: number): void {
  const measuredMs = Date.parse(date ?? "") - now;
  if (Number.isNaN(measuredMs)) return;
  const known = Math.abs(measuredMs) < APART_MS_MIN ? 0 : measuredMs;
  if (Math.abs(known - aheadMs) < APART_MS_MIN) return;
  aheadMs = known;
  for (const listener of listeners) listener();
}

/** How far the clock of the service is ahead of that of the browser, in milliseconds. */
export function serviceAheadMs(): number {
  return aheadMs;
}

/** Calls `listener` whenever that turns out to be another; the answer ends that. */
export function onClock(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
