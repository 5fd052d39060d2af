/** The rules that are there, and which of them are shown. */

import { call } from "../api/client.ts";
import type { Rule, RuleList, ScopeName, Stats } from "../api/types.ts";
import { TEXT_COLUMNS } from "./columns.ts";
import { matchParts, plain, quotaWords } from "./words.ts";

/** Rules in one answer: the most that the service gives. */
const ANSWER_ROWS = 1000;
/** The most that there can be: the service takes no more. */
const RULES_MAX = 10_000;
/** Rules on one page of the table. */
export const PAGE_ROWS = 50;
/** With more rules than that, what they decided is not asked for: the answer has fifteen minutes of each. */
export const STATS_RULES_MAX = 200;

export const SCOPES: readonly ScopeName[] = ["user", "ip", "endpoint", "global", "custom"];

/** All rules, and where they come from. */
export type AllRules = Omit<RuleList, "next">;

/** Follows the cursors of the list to its end. */
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

/** What each rule decided in the last minute. */
export type RuleCounts = ReadonlyMap<number, { readonly granted: number; readonly denied: number }>;

export async function loadCounts(signal: AbortSignal): Promise<RuleCounts> {
  const stats = await call<Stats>("GET", "/v1/stats", { signal });
  return new Map(
    stats.rules.map(({ rule_id, last_minute }) => [
      rule_id,
      // What can never be granted was denied, too.
      { granted: last_minute.granted, denied: last_minute.denied + last_minute.never },
    ]),
  );
}

/** Whether this can be the number of a rule. Anybody can write an address: other texts must not become part of a path. */
export function isRuleId(text: string | null): text is string {
  return text !== null && /^\d{1,16}$/.test(text);
}

/** Whether rules are changed in the database; else they come from a file, or from nowhere. */
export function isChangeable(source: string): boolean {
  return /^(sqlite|postgres|postgresql):/.test(source);
}

/** The plan that stands for rules that are for every plan: no plan can be called so, for it is not one text. */
export const EVERY_PLAN = "\u0000every";

/** What is looked for. Empty finds all. */
export interface Filter {
  readonly text: string;
  readonly plan: string;
  readonly scope: string;
  /** `on`, `off` or empty. */
  readonly active: string;
}

/** The filter in an address: `plan=free`, or `plans=every` for the rules of no plan in particular. */
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

/** All that a rule says to people. */
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

/** The rows of a page, counted from 1; a page that is not there is the nearest. */
export function pageOf(rules: readonly Rule[], asked: number): { rows: Rule[]; page: number; pages: number } {
  const pages = Math.max(1, Math.ceil(rules.length / PAGE_ROWS));
  const page = Math.min(Math.max(1, Number.isInteger(asked) ? asked : 1), pages);
  return { rows: rules.slice((page - 1) * PAGE_ROWS, page * PAGE_ROWS), page, pages };
}

/** The plans that rules name, in order. */
export function plansOf(rules: readonly Rule[]): string[] {
  return [...new Set(rules.flatMap((rule) => rule.plan ?? []))].sort();
}

/** The names that rules have, in order. */
export function namesOf(rules: readonly Rule[]): string[] {
  return [...new Set(rules.flatMap((rule) => rule.name ?? []))].sort();
}
