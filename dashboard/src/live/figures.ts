/** Current rates: averages of the last few seconds, so that they can be read. */

import type { DecisionCounts, LiveRule } from "../api/types.ts";
import { formatCount } from "../format.ts";
import type { PastTick } from "./ticks.ts";

/** Seconds that the current rates cover. */
export const NOW_S = 5;
/** The most rules in the table. */
export const RULES_MAX = 50;

export interface Rates {
  readonly allowed: number;
  /** Includes `never`. */
  readonly denied: number;
  readonly never: number;
  /** From 0 to 1; undefined without decisions. */
  readonly shareDenied: number | undefined;
}

export interface RuleNow extends Rates {
  readonly rule: LiveRule;
}

/** The ticks of the last `NOW_S` seconds. */
export function recent(history: readonly PastTick[]): PastTick[] {
  const now = history.at(-1)?.at ?? 0;
  return history.filter(({ at }) => at > now - NOW_S * 1000);
}

/** Requests per second, with and without a rule. */
export function requestsNow(history: readonly PastTick[]): Rates {
  const ticks = recent(history);
  const counts = ticks.map(({ requests }) => ({ granted: requests.allowed, denied: requests.denied, never: 0 }));
  return ratesFrom(counts, secondsOf(ticks));
}

/** The latest known latency. */
export function latencyOf(history: readonly PastTick[]): PastTick["latency"] | undefined {
  return recent(history).findLast(({ latency }) => latency.count > 0)?.latency;
}

/** Recent decisions that were made without the store. */
export function degradedNow(history: readonly PastTick[]): number {
  return recent(history).reduce((sum, { degraded }) => sum + degraded, 0);
}

/** Current rates of every rule in the history, busiest first. */
export function rulesNow(history: readonly PastTick[]): RuleNow[] {
  const ticks = recent(history);
  const seconds = secondsOf(ticks);
  const decided = ticks.flatMap(({ rules }) => rules);
  const now = (id: number) => decided.filter(({ rule_id }) => rule_id === id);
  return busiest(history)
    .slice(0, RULES_MAX)
    .map((rule) => ({ rule, ...ratesFrom(now(rule.rule_id), seconds) }));
}

/** The latest state of the rules in the history, those with most decisions first. */
export function busiest(history: readonly PastTick[]): LiveRule[] {
  const rules = new Map<number, { rule: LiveRule; sum: number }>();
  for (const rule of history.flatMap(({ rules }) => rules)) {
    const sum = (rules.get(rule.rule_id)?.sum ?? 0) + totalOf(rule);
    rules.set(rule.rule_id, { rule, sum });
  }
  return [...rules.values()].sort((a, b) => b.sum - a.sum || a.rule.rule_id - b.rule.rule_id).map(({ rule }) => rule);
}

export function totalOf({ granted, denied, never }: DecisionCounts): number {
  return granted + denied + never;
}

function ratesFrom(counts: readonly DecisionCounts[], seconds: number): Rates {
  const sum = { granted: 0, denied: 0, never: 0 };
  for (const { granted, denied, never } of counts) {
    sum.granted += granted;
    sum.denied += denied;
    sum.never += never;
  }
  const total = totalOf(sum);
  const per = (count: number) => (seconds === 0 ? 0 : count / seconds);
  return {
    allowed: per(sum.granted),
    denied: per(sum.denied + sum.never),
    never: per(sum.never),
    shareDenied: total === 0 ? undefined : (sum.denied + sum.never) / total,
  };
}

function secondsOf(ticks: readonly PastTick[]): number {
  return ticks.reduce((sum, { seconds }) => sum + seconds, 0);
}

/** `0`, `0.4`, `12`, `3,400`: a rate, with a decimal only where it matters. */
export function formatRate(rate: number): string {
  if (rate > 0 && rate < 0.05) return "< 0.1";
  const decimal = Math.round(rate * 10) / 10;
  return decimal < 10 ? String(decimal) : formatCount(Math.round(rate));
}

/** `0 %`, `0.3 %`, `42 %`; 0 and 100 % only if exact. */
export function formatShare(share: number | undefined): string {
  if (share === undefined) return "–";
  const percent = share * 100;
  if (percent === 0 || percent === 100) return `${percent} %`;
  if (percent < 0.1) return "< 0.1 %";
  if (percent > 99.9 && percent < 100) return "> 99.9 %";
  return percent < 10 || (percent > 99 && percent < 100) ? `${percent.toFixed(1)} %` : `${Math.round(percent)} %`;
}

/** Microseconds in a suitable unit: `25 µs`, `1.5 ms`, `2 s`. */
export function formatMicros(us: number | null): string {
  if (us === null) return "–";
  if (us < 1000) return `${us} µs`;
  if (us < 1_000_000) return `${Number((us / 1000).toPrecision(3))} ms`;
  return `${Number((us / 1_000_000).toPrecision(3))} s`;
}

/** The upper bound of a histogram bucket: `≤ 25 µs`. */
export function formatMicrosBound(us: number | null): string {
  return us === null ? "–" : `≤ ${formatMicros(us)}`;
}

/** Age in whole seconds: `now`, `12 s ago`. */
export function formatAgo(rfc3339: string, now: string): string {
  const seconds = Math.round((Date.parse(now) - Date.parse(rfc3339)) / 1000);
  if (Number.isNaN(seconds)) return "";
  return seconds < 1 ? "now" : `${seconds} s ago`;
}
