/** Verdict of an explanation: the one that a check would give now. */

import type { Explained, Explanation } from "../api/types.ts";

/** Order in which scopes are named if their waits are equal. */
const SCOPES: readonly string[] = ["global", "ip", "endpoint", "user", "custom"];

export type Outcome =
  /** No enforced rule denies it. */
  | { readonly kind: "allowed"; readonly counted: number }
  /** This rule denies it for now. */
  | { readonly kind: "denied"; readonly rule: Explained; readonly retryAfterMs: number }
  /** This rule denies it however long the client waits. */
  | { readonly kind: "never"; readonly rule: Explained }
  /** It would be denied, but by none of the rules shown. */
  | { readonly kind: "unknown" };

/** The verdict, and the denying rule with the longest wait, which a check would name. */
export function outcomeOf(explanation: Explanation): Outcome {
  const tiers = explanation.rules.filter((rule) => rule.applies);
  if (explanation.allowed) return { kind: "allowed", counted: tiers.length };
  const against = tiers.filter((rule) => rule.mode === "enforce" && rule.would_allow === false);
  const [rule] = against.sort(byWait);
  if (rule === undefined) return { kind: "unknown" };
  return rule.retry_after_ms === null
    ? { kind: "never", rule }
    : { kind: "denied", rule, retryAfterMs: rule.retry_after_ms };
}

function byWait(a: Explained, b: Explained): number {
  const wait = (rule: Explained) => rule.retry_after_ms ?? Number.POSITIVE_INFINITY;
  if (wait(a) !== wait(b)) return wait(b) - wait(a);
  return SCOPES.indexOf(a.scope) - SCOPES.indexOf(b.scope) || a.rule_id - b.rule_id;
}

/** The level of a bucket. */
export interface Holding {
  readonly limit: number;
  readonly remaining: number;
  /** Share that is left, from 0 to 1. */
  readonly level: number;
  /** Milliseconds until it is full. */
  readonly fullIn: number;
  /** Milliseconds until there are enough tokens; null for never. */
  readonly enoughIn: number | null;
}

/** The level `passed` milliseconds after the answer; undefined if the rule has no bucket. */
export function holdingOf(rule: Explained, passed: number): Holding | undefined {
  const { limit, remaining, reset_after_ms, retry_after_ms } = rule;
  if (limit === null || remaining === null || limit === 0) return undefined;
  const fullIn = Math.max(0, (reset_after_ms ?? 0) - passed);
  const held = fullIn === 0 ? limit : remaining;
  return {
    limit,
    remaining: held,
    level: Math.min(1, Math.max(0, held / limit)),
    fullIn,
    enoughIn: retry_after_ms === null ? null : Math.max(0, retry_after_ms - passed),
  };
}

/** The shortest polling interval. */
const PAUSE_MIN_MS = 100;

/** The pause before the next request: until the shortest wait is over, at most `every`. */
export function pauseOf(explanation: Explanation | undefined, every: number): number {
  const waits = (explanation?.rules ?? []).map((rule) => rule.retry_after_ms ?? 0).filter((wait) => wait > 0);
  return Math.max(PAUSE_MIN_MS, Math.min(every, ...waits));
}
