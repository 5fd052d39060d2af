/** Clock of the service, estimated from the `date` of its answers: the browser's clock may be wrong. */

/** Smaller differences are ignored: answers take time to arrive, and their dates are whole seconds. */
export const APART_MS_MIN = 10_000;

const listeners = new Set<() => void>();
let aheadMs = 0;

/** Records the `date` of an answer that arrived at `now` by the browser's clock. */
export function noteDate(date: string | null, now: number): void {
  const measuredMs = Date.parse(date ?? "") - now;
  if (Number.isNaN(measuredMs)) return;
  const known = Math.abs(measuredMs) < APART_MS_MIN ? 0 : measuredMs;
  if (Math.abs(known - aheadMs) < APART_MS_MIN) return;
  aheadMs = known;
  for (const listener of listeners) listener();
}

/** Milliseconds by which the service's clock is ahead of the browser's. */
export function serviceAheadMs(): number {
  return aheadMs;
}

/** Calls `listener` when the difference changes; returns the unsubscribe function. */
export function onClock(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
