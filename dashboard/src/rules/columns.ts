/** The columns of a rule that people change, and how two rules differ in them. */

import type { Rule } from "../api/types.ts";
import { formatCount } from "../format.ts";
import { visible, visibleLines } from "../ui/visible.ts";
import { perWords, timeOf, timeWords } from "./time.ts";

/** Columns that only make sense together are one. */
const COLUMNS = {
  conditions: { title: "Conditions", names: ["conditions"] },
  key_pattern: { title: "Key pattern", names: ["key_pattern"] },
  burst_capacity: { title: "Burst", names: ["burst_capacity"] },
  rate: { title: "Rate", names: ["tokens", "period"] },
  plan: { title: "Plan", names: ["plan"] },
  mode: { title: "Mode", names: ["mode"] },
  is_active: { title: "Switched", names: ["is_active"] },
  algorithm: { title: "Algorithm", names: ["algorithm"] },
  refill: { title: "Refill", names: ["refill"] },
  max_wait: { title: "Longest wait", names: ["max_wait"] },
  on_error: { title: "Store in trouble", names: ["on_error"] },
  scope: { title: "Scope", names: ["scope"] },
  name: { title: "Name", names: ["name"] },
  replaces: { title: "Replaces", names: ["replaces"] },
  description: { title: "Description", names: ["description"] },
} as const satisfies Record<string, { title: string; names: readonly (keyof Rule)[] }>;

export type Column = keyof typeof COLUMNS;

/** In the order of the sentence that a rule is. */
export const COLUMN_NAMES = Object.keys(COLUMNS) as Column[];

export function titleOf(column: Column): string {
  return COLUMNS[column].title;
}

/** Whether two rules agree in a column. */
export function isSameIn(column: Column, one: Rule, other: Rule): boolean {
  return COLUMNS[column].names.every((name) => textOf(one[name]) === textOf(other[name]));
}

/** The order of conditions means nothing. */
function textOf(value: unknown): string {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return JSON.stringify(value);
  return JSON.stringify(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** `rule`, with a column as `from` has it. */
export function withColumn(rule: Rule, column: Column, from: Rule): Rule {
  const taken = Object.fromEntries(COLUMNS[column].names.map((name) => [name, from[name]]));
  return { ...rule, ...taken };
}

/** What a rule has in a column, as text. */
export function showColumn(column: Column, rule: Rule): string {
  switch (column) {
    case "conditions": {
      const conditions = Object.entries(rule.conditions).map(([attribute, text]) => visible(`${attribute} = ${text}`));
      return conditions.join("\n") || "none";
    }
    case "rate":
      return `${formatCount(rule.tokens)} per ${perWords(timeOf(rule.period))}`;
    case "burst_capacity":
      return formatCount(rule.burst_capacity);
    case "plan":
      return rule.plan === null ? "every plan" : visible(rule.plan);
    case "is_active":
      return rule.is_active ? "on" : "off";
    case "max_wait":
      return rule.max_wait === null ? "none" : timeWords(timeOf(rule.max_wait));
    case "replaces":
      return rule.replaces.map(visible).join("\n") || "nothing";
    default:
      return visibleLines(rule[column] || "none");
  }
}

/** What was changed in a column. */
export interface ColumnChange {
  readonly column: Column;
  readonly old: string;
  readonly new: string;
}

/** The columns in which two rules differ. */
export function changesOf(old: Rule, changed: Rule): ColumnChange[] {
  return COLUMN_NAMES.filter((column) => !isSameIn(column, old, changed)).map((column) => ({
    column,
    old: showColumn(column, old),
    new: showColumn(column, changed),
  }));
}
