/** Texts for quotas and overrides. */

import type { Override, Rule } from "../../api/types.ts";
import { formatTime } from "../../format.ts";
import { timeOf } from "../../rules/time.ts";
import { quotaText as inWords } from "../../rules/words.ts";

const UNITS: readonly (readonly [number, string])[] = [
  [86_400, "day"],
  [3600, "hour"],
  [60, "minute"],
];

/** Seconds in a readable form that the service accepts: `1 minute`, `2 hours`, `62.5s`. */
export function periodText(seconds: number): string {
  for (const [size, name] of UNITS) {
    const count = seconds / size;
    if (Number.isInteger(count) && count >= 1) return `${count} ${name}${count === 1 ? "" : "s"}`;
  }
  return `${seconds}s`;
}

type QuotaColumns = Pick<Rule, "tokens" | "period" | "burst_capacity" | "algorithm" | "refill">;

/** The quota, as in the table of rules: `burst 50, refilling 10 per second`. */
export function quotaText({ tokens, period, burst_capacity, ...how }: QuotaColumns): string {
  return inWords(how, { tokens: BigInt(tokens), capacity: BigInt(burst_capacity), period: timeOf(period) });
}

/** The effect of an override: a quota, no limit, or a block. */
export function overrideText({ kind, tokens, period, burst_capacity, algorithm, refill }: Override): string {
  if (kind === "unlimited") return "no limit";
  if (kind === "blocked") return "all requests denied";
  if (tokens === null || period === null || algorithm === null) return "custom quota";
  return quotaText({
    tokens,
    period,
    burst_capacity: burst_capacity ?? tokens,
    algorithm,
    refill: refill ?? "continuous",
  });
}

export function untilText(expiresAt: string | null): string {
  return expiresAt === null ? "without expiry" : `until ${formatTime(expiresAt)} UTC`;
}

/** A whole number as a number; other text unchanged, so that the service reports the error. */
export function numberOrText(text: string): number | string | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  return /^\d{1,15}$/.test(trimmed) ? Number(trimmed) : trimmed;
}

/** The trimmed text; undefined if it is empty. */
export function textOrNothing(text: string): string | undefined {
  const trimmed = text.trim();
  return trimmed === "" ? undefined : trimmed;
}
