/** Texts about a lane. */

import type { Problem } from "../api/client.ts";
import { formatCount, formatWait } from "../format.ts";
import type { Outcome } from "./exchange.ts";
import { isInterval, isStepwise, isWindow, type Lane, limitOf } from "./lane.ts";
import type { LaneState } from "./lane-state.ts";

/** Text of a countdown: tenths of a second, rounded up so that it is never too short. */
export function countdown(ms: number): string {
  return ms < 60_000 ? `${(Math.ceil(ms / 100) / 10).toFixed(1)}\u00a0s` : formatWait(ms);
}

/** Text of the level: tenths for small buckets that refill continuously, else whole tokens. */
export function levelFigure(lane: Lane, level: number): string {
  const hasTenths = limitOf(lane) < 100 && !isStepwise(lane);
  // Rounded down: a partial token cannot be spent.
  return hasTenths ? (Math.floor(level * 10 + 1e-6) / 10).toFixed(1) : formatCount(Math.floor(level + 1e-6));
}

/** Short text of a number: `950`, `2.5k`, `100k`, `1M`. */
export function shortCount(count: number): string {
  if (count < 1000) return formatCount(Math.round(count * 10) / 10);
  // 1M instead of a rounded 1000k.
  const [size, unit] = count < 999_500 ? [1000, "k"] : [1_000_000, "M"];
  const part = count / size;
  return `${formatCount(part < 100 ? Math.round(part * 10) / 10 : Math.round(part))}${unit}`;
}

/** Unit of the level. */
export function levelUnit(lane: Lane, limit: number): string {
  const most = formatCount(limit);
  if (lane.algorithm === "leaky_bucket") return `of ${most} queue slots free`;
  return isWindow(lane) ? `of ${most} left in the window` : `of ${most} tokens`;
}

/** `isPassing` is undefined if unknown. */
export type Outlook = { readonly text: string; readonly isPassing: boolean | undefined };

/** Returns whether an error is about the quota, and not about the service or missing rights. */
export function isOfSetting({ status, field }: Problem): boolean {
  return field !== undefined || status === 400 || status === 422;
}

/** Text that says whether a request would pass now, and if not, when. `isUnanswered`: the service does not answer. */
export function outlook(state: LaneState, now: number, isUnanswered = false): Outlook {
  const { lane, reading, problem } = state;
  if (isUnanswered) return { text: "The service does not answer", isPassing: undefined };
  if (problem !== undefined) return refusal(problem);
  if (reading === undefined) return { text: "Loading…", isPassing: undefined };
  const wait = state.wait(lane.cost, now);
  const what = lane.cost === 1 ? "A request" : `A request with cost ${formatCount(lane.cost)}`;
  if (wait === undefined)
    return { text: `${what} can never pass: the limit is ${formatCount(reading.limit)}`, isPassing: false };
  if (wait > 0) return { text: `${what} passes in ${countdown(wait)}`, isPassing: false };
  const line = reading.at + reading.resetAfterMs - now;
  const isLate = lane.algorithm === "leaky_bucket" && line > 0;
  return { text: isLate ? `${what} is queued for ${countdown(line)}` : `${what} passes`, isPassing: true };
}

function refusal(problem: Problem): Outlook {
  if (isOfSetting(problem)) return { text: "The service rejects this quota", isPassing: false };
  const isForbidden = problem.status === 401 || problem.status === 403;
  return {
    text: isForbidden ? "The service denies access" : "The service cannot answer now",
    isPassing: undefined,
  };
}

/** Waits until the next token and until full; undefined if full. */
export function refillWords(
  state: LaneState,
  now: number,
): { readonly next: string; readonly full: string } | undefined {
  const { reading } = state;
  const level = state.level(now);
  if (reading === undefined || level === undefined) return { next: "–", full: "–" };
  const full = Math.max(0, reading.at + reading.resetAfterMs - now);
  if (full === 0) return undefined;
  const next = state.wait(Math.min(reading.limit, Math.floor(level + 1e-6) + 1), now) ?? full;
  return { next: countdown(next), full: countdown(full) };
}

/** Label of the wait until the next token. */
export function nextLabel(lane: Lane): string {
  if (lane.algorithm === "fixed_window") return "Window ends in";
  if (lane.algorithm === "leaky_bucket") return "Next slot in";
  if (isWindow(lane)) return "Next token in";
  return isInterval(lane) && lane.tokens > 1 ? `Next ${formatCount(lane.tokens)} tokens in` : "Next token in";
}

export function fullLabel(lane: Lane): string {
  return lane.algorithm === "leaky_bucket" ? "Queue empty in" : isWindow(lane) ? "All available in" : "Full in";
}

/** Shown instead of the waits if full. */
export function fullWord(lane: Lane): string {
  return lane.algorithm === "leaky_bucket" ? "Queue empty" : isWindow(lane) ? "All available" : "Full";
}

/** Each outcome has a sign and a word, so that it does not depend on colour. */
export const OUTCOMES: Record<Outcome, { readonly sign: string; readonly word: string; readonly kind: string }> = {
  allowed: { sign: "✓", word: "Allowed", kind: "allowed" },
  denied: { sign: "✗", word: "Denied", kind: "denied" },
  never: { sign: "✗", word: "Never", kind: "denied" },
  refused: { sign: "!", word: "Refused", kind: "warning" },
  unanswered: { sign: "?", word: "No answer", kind: "warning" },
};
