/** What the stream tells, and how much of it is kept: two minutes, however long the page is open. */

import type { ServerEvent } from "../api/sse.ts";
import type { LiveHistory, LiveTick } from "../api/types.ts";

/** How far back the page looks. */
export const HISTORY_S = 120;
/** The most ticks that are kept, should they come faster than once a second. */
export const TICKS_MAX = 2 * HISTORY_S;

/** A second that is over: what the figures and charts need of it. */
export interface Past extends Omit<LiveTick, "limited" | "shared"> {
  /** Milliseconds since 1970, by the clock of the service. */
  readonly at: number;
}

/** Everything that is known. */
export interface Known {
  /** The oldest first. */
  readonly history: readonly Past[];
  readonly last: LiveTick | undefined;
}

export const NOTHING_KNOWN: Known = { history: [], last: undefined };

/** What is known after an event. What cannot be read changes nothing. */
export function withEvent(known: Known, { event, data }: ServerEvent): Known {
  try {
    if (event === "tick") return withTick(known, JSON.parse(data) as LiveTick);
    if (event === "history") return withHistory(known, JSON.parse(data) as LiveHistory);
  } catch {
    // An event that is cut or of another release: the next one tells all of it again.
  }
  return known;
}

function withTick({ history }: Known, tick: LiveTick): Known {
  const past = pastOf(tick);
  return { history: bounded([...history, past], past.at), last: tick };
}

/** A service that has just started knows nothing of before; what the page has seen itself stays then. */
function withHistory({ history, last }: Known, { ticks }: LiveHistory): Known {
  const told = ticks.map(pastOf);
  const first = told[0];
  const latest = told.at(-1);
  if (first === undefined || latest === undefined) return { history, last };
  const before = history.filter(({ at }) => at < first.at);
  return { history: bounded([...before, ...told], latest.at), last };
}

/** Leaves out what is too old, and what is of a time that is yet to come: a clock may be set back. */
function bounded(history: readonly Past[], now: number): Past[] {
  return history.filter(({ at }) => at <= now && at > now - HISTORY_S * 1000).slice(-TICKS_MAX);
}

function pastOf(tick: LiveTick): Past {
  const { limited: _limited, shared: _shared, ...past } = tick;
  const at = Date.parse(tick.now);
  if (Number.isNaN(at)) throw new RangeError("a tick has no time");
  return { ...past, at };
}

/** Whether any rule, or `/v1/take`, has decided anything in these seconds. */
export function hasTraffic(history: readonly Past[]): boolean {
  return history.some(({ rules, other_rules, take }) =>
    [...rules, other_rules, take].some(({ granted, denied, never }) => granted + denied + never > 0),
  );
}
