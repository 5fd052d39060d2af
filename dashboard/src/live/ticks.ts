/** What the stream tells, and how much of it is kept: two minutes, however long the page is open. */

import type { ServerEvent } from "../api/sse.ts";
import type { LiveHistory, LiveTick } from "../api/types.ts";

/** How far back the page looks. */
export const HISTORY_S = 120;
/** The most ticks that are kept, should they come faster than once a second. */
export const TICKS_MAX = 2 * HISTORY_S;

/** A second that is over: what the figures and charts need of it. */
export interface PastTick extends Omit<LiveTick, "limited" | "shared"> {
  /** Milliseconds since 1970, by the clock of the service. */
  readonly at: number;
}

/** Everything that is known. */
export interface LiveData {
  /** The oldest first. */
  readonly history: readonly PastTick[];
  readonly last: LiveTick | undefined;
}

export const NO_DATA: LiveData = { history: [], last: undefined };

/** What is known after an event. What cannot be read changes nothing. */
export function withEvent(known: LiveData, { event, data }: ServerEvent): LiveData {
  try {
    if (event === "tick") return withTick(known, JSON.parse(data) as LiveTick);
    if (event === "history") return withHistory(known, JSON.parse(data) as LiveHistory);
  } catch {
    // An event that is cut or of another release: the next one tells all of it again.
  }
  return known;
}

function withTick({ history }: LiveData, tick: LiveTick): LiveData {
  const past = pastTickOf(tick);
  return { history: bounded([...history, past], past.at), last: tick };
}

/** A service that has just started knows nothing of before; what the page has seen itself stays then. */
function withHistory({ history, last }: LiveData, { ticks }: LiveHistory): LiveData {
  const received = ticks.map(pastTickOf);
  const first = received[0];
  const latest = received.at(-1);
  if (first === undefined || latest === undefined) return { history, last };
  const before = history.filter(({ at }) => at < first.at);
  return { history: bounded([...before, ...received], latest.at), last };
}

/** Leaves out what is too old, and what is of a time that is yet to come: a clock may be set back. */
function bounded(history: readonly PastTick[], now: number): PastTick[] {
  return history.filter(({ at }) => at <= now && at > now - HISTORY_S * 1000).slice(-TICKS_MAX);
}

function pastTickOf(tick: LiveTick): PastTick {
  const { limited: _limited, shared: _shared, ...past } = tick;
  const at = Date.parse(tick.now);
  if (Number.isNaN(at)) throw new RangeError("a tick has no time");
  return { ...past, at };
}

/** Whether any rule, or `/v1/take`, has decided anything in these seconds. */
export function hasTraffic(history: readonly PastTick[]): boolean {
  return history.some(({ rules, other_rules, take }) =>
    [...rules, other_rules, take].some(({ granted, denied, never }) => granted + denied + never > 0),
  );
}
