/** Utilisation of shared tiers: of their tokens and of their refill rate. */

import type { SharedTier } from "../api/types.ts";
import { recent } from "./figures.ts";
import type { PastTick } from "./ticks.ts";

/** Refill rates below this, in tokens per second, cannot be compared with the grants of a few seconds. */
export const RATE_MIN = 1;

export interface Use {
  /** The larger of the two shares, above 1 in a burst; null if neither is known. */
  readonly share: number | null;
  readonly of: "tokens" | "rate";
  /** Current grants against the refill rate; undefined if unknown. */
  readonly rate: Rate | undefined;
}

interface Rate {
  /** Requests per second, of any cost. */
  readonly granted: number;
  /** Tokens per second. */
  readonly refill: number;
  readonly share: number;
}

export function utilisationOf(tier: SharedTier, history: readonly PastTick[]): Use {
  const rate = rateOf(tier, history);
  const level = tier.utilisation;
  if (rate !== undefined && rate.share > (level ?? 0)) return { share: rate.share, of: "rate", rate };
  return { share: level, of: "tokens", rate };
}

function rateOf({ rule_id, rate_per_second: refill }: SharedTier, history: readonly PastTick[]): Rate | undefined {
  if (refill < RATE_MIN) return undefined;
  let granted = 0;
  let seconds = 0;
  for (const { rules, other_rules, seconds: lasted } of recent(history)) {
    const rule = rules.find((rule) => rule.rule_id === rule_id);
    // It may be one of the rules that are only reported as a sum.
    if (rule === undefined && other_rules.granted > 0) return undefined;
    granted += rule?.granted ?? 0;
    seconds += lasted;
  }
  if (seconds === 0) return undefined;
  const perSecond = granted / seconds;
  return { granted: perSecond, refill, share: perSecond / refill };
}
