/** What an explanation comes to: the verdict that a check would give now. */

import type { Explained, Explanation } from "../api/types.ts";

/** Which of several scopes is named first, where their waits are the same. */
const SCOPES: readonly string[] = ["global", "ip", "endpoint", "user", "custom"];

export type Outcome =
  /** No enforced rule is against it. */
  | { readonly kind: "allowed"; readonly counted: number }
  /** This rule is, and waiting helps. */
  | { readonly kind: "denied"; readonly rule: Explained; readonly retryAfterMs: number }
  /** This rule is, and waiting does not help. */
  | { readonly kind: "never"; readonly rule: Explained }
  /** It would be denied, and no rule that is shown says why. */
  | { readonly kind: "unknown" };

/** The verdict, and the rule that a check would name: the one with the longest wait. */
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

/** What a bucket holds. */
export interface Holding {
  readonly limit: number;
  readonly remaining: number;
  /** How full it is, from 0 to 1. */
  readonly level: number;
  /** Milliseconds until it is full. */
  readonly fullIn: number;
  /** Milliseconds until there is enough; null for never. */
  readonly enoughIn: number | null;
}

/** What a bucket holds `passed` milliseconds after the answer; undefined where there is nothing to hold. */
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

/** Never asks more often than this, however short a wait is. */
const PAUSE_MIN_MS = 100;

/** How long to wait before asking again: until a wait is over, and no longer than `every`. */
export function pauseOf(explanation: Explanation | undefined, every: number): number {
  const waits = (explanation?.rules ?? []).map((rule) => rule.retry_after_ms ?? 0).filter((wait) => wait > 0);
  return Math.max(PAUSE_MIN_MS, Math.min(every, ...waits));
}
