/** Quotas and overrides, in words. */

import type { Override, Rule } from "../../api/types.ts";
import { formatTime } from "../../format.ts";
import { timeOf } from "../../rules/time.ts";
import { quotaText as inWords } from "../../rules/words.ts";

const UNITS: readonly (readonly [number, string])[] = [
  [86_400, "day"],
  [3600, "hour"],
  [60, "minute"],
];

/** Seconds as the service takes them, and people read them: `1 minute`, `2 hours`, `62.5s`. */
export function periodText(seconds: number): string {
  for (const [size, name] of UNITS) {
    const count = seconds / size;
    if (Number.isInteger(count) && count >= 1) return `${count} ${name}${count === 1 ? "" : "s"}`;
  }
  return `${seconds}s`;
}

type QuotaColumns = Pick<Rule, "tokens" | "period" | "burst_capacity" | "algorithm" | "refill">;

/** As the table of rules has it: `burst 50, refilling 10 per second`. */
export function quotaText({ tokens, period, burst_capacity, ...how }: QuotaColumns): string {
  return inWords(how, { tokens: BigInt(tokens), capacity: BigInt(burst_capacity), period: timeOf(period) });
}

/** What an override gives: a quota, no limit, or nothing. */
export function overrideText({ kind, tokens, period, burst_capacity, algorithm, refill }: Override): string {
  if (kind === "unlimited") return "no limit";
  if (kind === "blocked") return "everything is denied";
  if (tokens === null || period === null || algorithm === null) return "another quota";
  return quotaText({
    tokens,
    period,
    burst_capacity: burst_capacity ?? tokens,
    algorithm,
    refill: refill ?? "continuous",
  });
}

export function untilText(expiresAt: string | null): string {
  return expiresAt === null ? "for ever" : `until ${formatTime(expiresAt)} UTC`;
}

/** A whole number as one; anything else as it was typed, for the service to say what is wrong with it. */
export function numberOrText(text: string): number | string | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  return /^\d{1,15}$/.test(trimmed) ? Number(trimmed) : trimmed;
}

/** The text, or nothing. */
export function textOrNothing(text: string): string | undefined {
  const trimmed = text.trim();
  return trimmed === "" ? undefined : trimmed;
}
