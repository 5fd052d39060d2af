/**
 * The columns of a rule: their titles and values in every view, and the differences between two rules.
 *
 * A new column that decides nothing is one entry in `COLUMNS`.
 */

import type { NewRule, Rule } from "../api/types.ts";
import { formatCount } from "../format.ts";
import type { ColumnChange } from "../ui/column-changes.tsx";
import { visible, visibleLines } from "../ui/visible.ts";
import { perWords, timeOf, timeWords } from "./time.ts";

/** A column of the editor, the history and the conflict view. */
interface ColumnSpec {
  readonly title: string;
  /** Fields of the rule that only make sense together; without it, the field of the same name. */
  readonly fields?: readonly (keyof Rule)[];
  /** The value as text; without it, the text of the field, or "none". */
  readonly show?: (rule: Rule) => string;
  /** True if its field is in the folded part of the editor. */
  readonly isAdvanced?: boolean;
  /** Plain text that decides nothing. The editor has a line for it and the search finds it, without code elsewhere. */
  readonly isText?: boolean;
}

/** Every column that can be edited, in the order of the sentence that describes a rule. */
const COLUMNS = {
  conditions: {
    title: "Conditions",
    show: ({ conditions }) =>
      lines(Object.entries(conditions).map(([attribute, text]) => `${attribute} = ${text}`)) || "none",
  },
  path: { title: "Paths", isAdvanced: true },
  key_pattern: { title: "Key pattern" },
  burst_capacity: { title: "Burst", show: (rule) => formatCount(rule.burst_capacity) },
  rate: {
    title: "Rate",
    fields: ["tokens", "period"],
    show: (rule) => `${formatCount(rule.tokens)} per ${perWords(timeOf(rule.period))}`,
  },
  plan: { title: "Plan", show: ({ plan }) => (plan === null ? "every plan" : visible(plan)) },
  mode: { title: "Mode" },
  is_active: { title: "Active", show: (rule) => (rule.is_active ? "on" : "off") },
  algorithm: { title: "Algorithm", isAdvanced: true },
  refill: { title: "Refill", isAdvanced: true },
  max_wait: {
    title: "Longest wait",
    isAdvanced: true,
    show: (rule) => (rule.max_wait === null ? "none" : timeWords(timeOf(rule.max_wait))),
  },
  on_error: { title: "On store errors", isAdvanced: true },
  scope: { title: "Scope", isAdvanced: true },
  name: { title: "Name", isAdvanced: true },
  replaces: { title: "Replaces", isAdvanced: true, show: (rule) => lines(rule.replaces) || "nothing" },
  description: { title: "Description", isText: true },
} as const satisfies Record<string, ColumnSpec>;

type Columns = typeof COLUMNS;
export type Column = keyof Columns;

/** A field of a rule that some column has. */
export type Field = { [C in Column]: Columns[C] extends { fields: readonly (infer F)[] } ? F : C }[Column];

export type TextColumn = { [C in Column]: Columns[C] extends { isText: true } ? C : never }[Column];

/** Fields of a rule that the service sets, or that follow from others. */
type FixedField = "rule_id" | "rate_per_second" | "created_at" | "version";

type Never<Missing extends never> = Missing;
/** Does not compile while the schema of the service has a field that `COLUMNS` lacks; the error names it. */
export type MissingField = Never<Exclude<keyof NewRule, Field | FixedField>>;

export const COLUMN_NAMES = Object.keys(COLUMNS) as Column[];

/** All fields of `COLUMNS`. */
export const FIELDS = COLUMN_NAMES.flatMap((column) => fieldsOf(column)) as Field[];

export const TEXT_COLUMNS = COLUMN_NAMES.filter((column) => specOf(column).isText) as TextColumn[];

function specOf(column: Column): ColumnSpec {
  return COLUMNS[column];
}

function fieldsOf(column: Column): readonly (keyof Rule)[] {
  return specOf(column).fields ?? [column as keyof Rule];
}

export function titleOf(column: Column): string {
  return COLUMNS[column].title;
}

/** Returns whether the column of a field is in the folded part of the editor. */
export function isAdvancedField(field: Field): boolean {
  return COLUMN_NAMES.some((column) => specOf(column).isAdvanced === true && fieldsOf(column).includes(field));
}

function lines(texts: readonly string[]): string {
  return texts.map(visible).join("\n");
}

/** Returns whether two rules have the same value in a column. */
export function isSameIn(column: Column, one: Rule, other: Rule): boolean {
  return fieldsOf(column).every((name) => textOf(one[name]) === textOf(other[name]));
}

/** JSON in which the order of conditions does not matter. */
function textOf(value: unknown): string {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return JSON.stringify(value);
  return JSON.stringify(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** `rule` with the value that `from` has in a column. */
export function withColumn(rule: Rule, column: Column, from: Rule): Rule {
  const taken = Object.fromEntries(fieldsOf(column).map((name) => [name, from[name]]));
  return { ...rule, ...taken };
}

/** The value of a column, as text. */
export function showColumn(column: Column, rule: Rule): string {
  const { show } = specOf(column);
  return show === undefined ? visibleLines(String(rule[column as keyof Rule] || "none")) : show(rule);
}

/** The columns in which two rules differ, with both values as text. */
export function changesOf(old: Rule, changed: Rule): ColumnChange[] {
  return COLUMN_NAMES.filter((column) => !isSameIn(column, old, changed)).map((column) => ({
    title: titleOf(column),
    old: showColumn(column, old),
    new: showColumn(column, changed),
  }));
}
