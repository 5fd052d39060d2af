/**
 * Form of a rule: every field is the text that was typed, so that nothing is lost or rounded before the service sees
 * it. `formOf` converts a rule to its form, `bodyOf` a form to the request body; together they change nothing.
 */

import type {
  AlgorithmName,
  ModeName,
  NewRule,
  OnErrorName,
  PathFormName,
  RefillName,
  Rule,
  ScopeName,
} from "../api/types.ts";
import { TEXT_COLUMNS, type TextColumn } from "./columns.ts";
import { suggestedScope } from "./pattern.ts";
import { microsOf, type Time, timeOf, timeText, type Unit } from "./time.ts";

export interface ConditionForm {
  readonly attribute: string;
  readonly isNot: boolean;
  /** A glob, optionally with exceptions. */
  readonly glob: string;
}

export type PlanKind = "every" | "default" | "named";

/** Columns of plain text, by their names in the API. */
type TextForm = Readonly<Record<TextColumn, string>>;

export interface RuleForm extends TextForm {
  /** The number of a deleted rule that is restored; else empty. */
  readonly ruleId: string;
  readonly conditions: readonly ConditionForm[];
  readonly keyPattern: string;
  readonly tokens: string;
  readonly period: string;
  readonly periodUnit: Unit;
  readonly burst: string;
  readonly planKind: PlanKind;
  readonly plan: string;
  readonly mode: ModeName;
  readonly algorithm: AlgorithmName;
  readonly refill: RefillName;
  readonly maxWait: string;
  readonly maxWaitUnit: Unit;
  readonly onError: OnErrorName;
  readonly path: PathFormName;
  /** Empty for the scope that follows from the pattern. */
  readonly scope: ScopeName | "";
  readonly name: string;
  /** One name per line: names contain no line breaks. */
  readonly replaces: string;
  readonly isActive: boolean;
}

/** Initial form of a new rule. */
export const NEW_FORM: RuleForm = {
  ruleId: "",
  conditions: [],
  keyPattern: "user:{user_id}",
  tokens: "10",
  period: "1",
  periodUnit: "second",
  burst: "50",
  planKind: "every",
  plan: "",
  mode: "enforce",
  algorithm: "token_bucket",
  refill: "continuous",
  maxWait: "",
  maxWaitUnit: "second",
  onError: "local",
  path: "exact",
  scope: "",
  name: "",
  replaces: "",
  isActive: true,
  ...textsOf(() => ""),
};

const DEFAULT_PLAN = "default";

/** Returns whether the limit is the tokens per period, without a separate capacity. */
export function isWindow(algorithm: AlgorithmName): boolean {
  return algorithm !== "token_bucket" && algorithm !== "leaky_bucket";
}

/** The form of an existing rule. */
export function formOf(rule: Rule): RuleForm {
  const period = timeOf(rule.period);
  const maxWait: Time = rule.max_wait === null ? { amount: "", unit: "second" } : timeOf(rule.max_wait);
  return {
    ruleId: "",
    conditions: Object.entries(rule.conditions).map(([attribute, text]) => conditionOf(attribute, text)),
    keyPattern: rule.key_pattern,
    tokens: String(rule.tokens),
    period: period.amount,
    periodUnit: period.unit,
    burst: isWindow(rule.algorithm) ? "" : String(rule.burst_capacity),
    planKind: rule.plan === null ? "every" : rule.plan === DEFAULT_PLAN ? "default" : "named",
    plan: rule.plan === null || rule.plan === DEFAULT_PLAN ? "" : rule.plan,
    mode: rule.mode,
    algorithm: rule.algorithm,
    refill: rule.refill,
    maxWait: maxWait.amount,
    maxWaitUnit: maxWait.unit,
    onError: rule.on_error,
    path: rule.path,
    scope: rule.scope === suggestedScope(rule.key_pattern) ? "" : rule.scope,
    name: rule.name ?? "",
    replaces: rule.replaces.join("\n"),
    isActive: rule.is_active,
    ...textsOf((column) => rule[column] ?? ""),
  };
}

function textsOf<T>(value: (column: TextColumn) => T): Record<TextColumn, T> {
  return Object.fromEntries(TEXT_COLUMNS.map((column) => [column, value(column)])) as Record<TextColumn, T>;
}

function conditionOf(attribute: string, text: string): ConditionForm {
  const isNot = text.startsWith("!");
  return { attribute, isNot, glob: isNot ? text.slice(1) : text };
}

/** The text of a condition in a rule. */
export function conditionText({ isNot, glob }: ConditionForm): string {
  return isNot ? `!${glob}` : glob;
}

/** Request body. Text that is not a number is sent unchanged, so that the service reports the error. */
export type Body = Omit<NewRule, "tokens" | "burst_capacity"> & {
  tokens?: number | string;
  burst_capacity?: number | string;
};

/** The request body of a form. `base` is the rule that it changes, if any. */
export function bodyOf(form: RuleForm, base?: Rule): Body {
  const body: Body = {
    key_pattern: form.keyPattern,
    conditions: Object.fromEntries(form.conditions.map((condition) => [condition.attribute, conditionText(condition)])),
    plan: form.planKind === "every" ? null : form.planKind === "default" ? DEFAULT_PLAN : form.plan,
    mode: form.mode,
    algorithm: form.algorithm,
    on_error: form.onError,
    path: form.path,
    name: form.name === "" ? null : form.name,
    replaces: form.replaces.split("\n").filter((name) => name !== ""),
    is_active: form.isActive,
    // Null is the default of every such column.
    ...textsOf((column) => form[column] || null),
    ...quotaOf(form),
  };
  const scope = scopeOf(form, base);
  if (scope !== undefined) body.scope = scope;
  if (form.ruleId !== "") body.rule_id = Number(form.ruleId);
  return body;
}

/** An unchanged pattern keeps its scope. */
function scopeOf(form: RuleForm, base: Rule | undefined): ScopeName | undefined {
  if (form.scope !== "") return form.scope;
  return base !== undefined && base.key_pattern === form.keyPattern && suggestedScope(base.key_pattern) === base.scope
    ? base.scope
    : undefined;
}

type QuotaBody = Pick<Body, "tokens" | "period" | "burst_capacity" | "refill" | "max_wait">;

function quotaOf(form: RuleForm): QuotaBody {
  // In mode `unlimited` the fields are hidden: an invalid quota is left out.
  if (form.mode === "unlimited" && quotaOfForm(form) === undefined) return {};
  const body: QuotaBody = {};
  if (form.tokens.trim() !== "") body.tokens = wholeNumber(form.tokens);
  if (form.period.trim() !== "") body.period = timeText({ amount: form.period, unit: form.periodUnit });
  if (form.burst.trim() !== "" && !isWindow(form.algorithm)) body.burst_capacity = wholeNumber(form.burst);
  if (form.algorithm === "token_bucket") body.refill = form.refill;
  if (form.algorithm === "leaky_bucket" && form.maxWait.trim() !== "") {
    body.max_wait = timeText({ amount: form.maxWait, unit: form.maxWaitUnit });
  }
  return body;
}

const WHOLE = /^\d+$/;

/** Numbers that JSON cannot carry exactly are sent as text. */
function wholeNumber(text: string): number | string {
  const trimmed = text.trim();
  return WHOLE.test(trimmed) && Number.isSafeInteger(Number(trimmed)) ? Number(trimmed) : trimmed;
}

/** The numbers of a quota, exactly. */
export interface Quota {
  readonly tokens: bigint;
  readonly period: Time;
  readonly periodMicros: bigint;
  readonly capacity: bigint;
}

/** The quota of a form; undefined while it is incomplete. */
export function quotaOfForm(form: RuleForm): Quota | undefined {
  const period = { amount: form.period, unit: form.periodUnit };
  const periodMicros = microsOf(period);
  const tokens = countOf(form.tokens);
  const isTokens = isWindow(form.algorithm) || form.burst.trim() === "";
  const capacity = isTokens ? tokens : countOf(form.burst);
  if (periodMicros === undefined || tokens === undefined || capacity === undefined) return undefined;
  return { tokens, period, periodMicros, capacity };
}

function countOf(text: string): bigint | undefined {
  const trimmed = text.trim();
  return WHOLE.test(trimmed) && BigInt(trimmed) > 0n ? BigInt(trimmed) : undefined;
}

/** Returns whether two forms are equal. */
export function isSameForm(one: RuleForm, other: RuleForm): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
