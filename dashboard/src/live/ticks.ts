/** History of ticks from the event stream, bounded to two minutes. */

import type { ServerEvent } from "../api/sse.ts";
import type { LiveHistory, LiveTick } from "../api/types.ts";

/** Length of the history in seconds. */
export const HISTORY_S = 120;
/** The most ticks kept, should they come faster than one per second. */
export const TICKS_MAX = 2 * HISTORY_S;

/** A past tick, without the lists that only the last one needs. */
export interface PastTick extends Omit<LiveTick, "limited" | "shared"> {
  /** Milliseconds since 1970, by the clock of the service. */
  readonly at: number;
}

/** The data of the live view. */
export interface LiveData {
  /** Oldest first. */
  readonly history: readonly PastTick[];
  readonly last: LiveTick | undefined;
}

export const NO_DATA: LiveData = { history: [], last: undefined };

/** The data after an event. Events that cannot be parsed are ignored. */
export function withEvent(known: LiveData, { event, data }: ServerEvent): LiveData {
  try {
    if (event === "tick") return withTick(known, JSON.parse(data) as LiveTick);
    if (event === "history") return withHistory(known, JSON.parse(data) as LiveHistory);
  } catch {
    // A truncated event, or one of another release: the next one is complete.
  }
  return known;
}

function withTick({ history }: LiveData, tick: LiveTick): LiveData {
  const past = pastTickOf(tick);
  return { history: bounded([...history, past], past.at), last: tick };
}

/** Merges the history of the service. After its restart that is short; older ticks of the page are kept. */
function withHistory({ history, last }: LiveData, { ticks }: LiveHistory): LiveData {
  const received = ticks.map(pastTickOf);
  const first = received[0];
  const latest = received.at(-1);
  if (first === undefined || latest === undefined) return { history, last };
  const before = history.filter(({ at }) => at < first.at);
  return { history: bounded([...before, ...received], latest.at), last };
}

/** Drops ticks that are too old, and those in the future: the clock may have been set back. */
function bounded(history: readonly PastTick[], now: number): PastTick[] {
  return history.filter(({ at }) => at <= now && at > now - HISTORY_S * 1000).slice(-TICKS_MAX);
}

function pastTickOf(tick: LiveTick): PastTick {
  const { limited: _limited, shared: _shared, ...past } = tick;
  const at = Date.parse(tick.now);
  if (Number.isNaN(at)) throw new RangeError("a tick has no time");
  return { ...past, at };
}

/** Returns whether any rule, or `/v1/take`, decided anything. */
export function hasTraffic(history: readonly PastTick[]): boolean {
  return history.some(({ rules, other_rules, take }) =>
    [...rules, other_rules, take].some(({ granted, denied, never }) => granted + denied + never > 0),
  );
}
