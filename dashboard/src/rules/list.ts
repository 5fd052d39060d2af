/** List of rules: loading, filters and pages. */

import { call } from "../api/client.ts";
import type { Rule, RuleList, ScopeName, Stats } from "../api/types.ts";
import { TEXT_COLUMNS } from "./columns.ts";
import { matchParts, plain, quotaWords } from "./words.ts";

/** The largest page that the service returns. */
const ANSWER_ROWS = 1000;
/** The most rules that the service accepts. */
const RULES_MAX = 10_000;
/** Rules on one page of the table. */
export const PAGE_ROWS = 50;
/** With more rules the counts are not loaded: the answer contains fifteen minutes of each. */
export const STATS_RULES_MAX = 200;

export const SCOPES: readonly ScopeName[] = ["user", "ip", "endpoint", "global", "custom"];

/** All rules and their source. */
export type AllRules = Omit<RuleList, "next">;

/** Loads all pages of the list. */
export async function loadRules(signal: AbortSignal): Promise<AllRules> {
  const rules: Rule[] = [];
  let after: string | undefined;
  for (;;) {
    const list = await call<RuleList>("GET", "/v1/rules", { query: { limit: ANSWER_ROWS, after }, signal });
    rules.push(...list.rules);
    if (list.next === null || rules.length >= RULES_MAX) return { ...list, rules };
    after = list.next;
  }
}

/** Decisions of each rule in the last minute. */
export type RuleCounts = ReadonlyMap<number, { readonly granted: number; readonly denied: number }>;

export async function loadCounts(signal: AbortSignal): Promise<RuleCounts> {
  const stats = await call<Stats>("GET", "/v1/stats", { signal });
  return new Map(
    stats.rules.map(({ rule_id, last_minute }) => [
      rule_id,
      // `never` is a denial, too.
      { granted: last_minute.granted, denied: last_minute.denied + last_minute.never },
    ]),
  );
}

/** Returns whether this is a rule number. Addresses are untrusted: other text must not become part of a path. */
export function isRuleId(text: string | null): text is string {
  return text !== null && /^\d{1,16}$/.test(text);
}

/** Returns whether the rules are in a database; those of a file and the starter rules are read-only. */
export function isChangeable(source: string): boolean {
  return /^(sqlite|postgres|postgresql):/.test(source);
}

/** Filter value for rules of every plan. No plan has this name: plans contain no NUL. */
export const EVERY_PLAN = "\u0000every";

/** Filter of the list. Empty values match all rules. */
export interface Filter {
  readonly text: string;
  readonly plan: string;
  readonly scope: string;
  /** `on`, `off` or empty. */
  readonly active: string;
}

/** Parses the filter in an address: `plan=free`, or `plans=every` for rules of every plan. */
export function filterOf(params: URLSearchParams): Filter {
  return {
    text: params.get("text") ?? "",
    plan: params.get("plans") === "every" ? EVERY_PLAN : (params.get("plan") ?? ""),
    scope: params.get("scope") ?? "",
    active: params.get("active") ?? "",
  };
}

/** The parameters of an address for a filter. */
export function paramsOf(filter: Filter): Record<string, string> {
  const isEvery = filter.plan === EVERY_PLAN;
  return {
    text: filter.text,
    plan: isEvery ? "" : filter.plan,
    plans: isEvery ? "every" : "",
    scope: filter.scope,
    active: filter.active,
  };
}

export function filterRules(rules: readonly Rule[], filter: Filter): Rule[] {
  const text = filter.text.trim().toLowerCase();
  return rules.filter(
    (rule) =>
      (filter.plan === "" || (rule.plan ?? EVERY_PLAN) === filter.plan) &&
      (filter.scope === "" || rule.scope === filter.scope) &&
      (filter.active === "" || rule.is_active === (filter.active === "on")) &&
      (text === "" || searched(rule).includes(text)),
  );
}

/** The text of a rule that the search covers. */
function searched(rule: Rule): string {
  const texts = [
    `#${rule.rule_id}`,
    rule.key_pattern,
    ...TEXT_COLUMNS.map((column) => rule[column]),
    rule.name ?? "",
    ...rule.replaces,
    plain(matchParts(rule)),
    quotaWords(rule),
    rule.plan ?? "",
    rule.mode,
  ];
  return texts.join("\n").toLowerCase();
}

/** The rows of a page, counted from 1; numbers out of range are clamped. */
export function pageOf(rules: readonly Rule[], wanted: number): { rows: Rule[]; page: number; pages: number } {
  const pages = Math.max(1, Math.ceil(rules.length / PAGE_ROWS));
  const page = Math.min(Math.max(1, Number.isInteger(wanted) ? wanted : 1), pages);
  return { rows: rules.slice((page - 1) * PAGE_ROWS, page * PAGE_ROWS), page, pages };
}

/** The plans of the rules, sorted. */
export function plansOf(rules: readonly Rule[]): string[] {
  return [...new Set(rules.flatMap((rule) => rule.plan ?? []))].sort();
}

/** The names of the rules, sorted. */
export function namesOf(rules: readonly Rule[]): string[] {
  return [...new Set(rules.flatMap((rule) => rule.name ?? []))].sort();
}
