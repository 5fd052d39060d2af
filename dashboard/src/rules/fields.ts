/** Places of errors in the form, by the field that the service names. */

import type { Problem } from "../api/client.ts";
import { FIELDS, type Field, isAdvancedField } from "./columns.ts";
import { isWindow, type RuleForm } from "./form.ts";

/** A field, a condition by its row, all conditions, or the top of the form for everything else. */
export type Place = Field | `conditions.${number}` | "top";

/** An error and its place in the form. */
export interface FormError {
  readonly place: Place;
  readonly text: string;
}

/** Returns whether the field is in the folded part of the editor, which must be opened to show it. */
export function isAdvanced(place: Place): boolean {
  const field = FIELDS.find((field) => field === place);
  return field !== undefined && isAdvancedField(field);
}

/** The place of a field in the form. Errors of hidden fields go to the top. */
export function placeOf(field: string | undefined, form: RuleForm): Place {
  // A preview request nests the rule.
  const name = field?.replace(/^rule\./, "") ?? "";
  if (name === "rate_per_second") return placeOf("tokens", form);
  if (name === "conditions" || name.startsWith("conditions.")) return conditionPlace(name, form);
  const place = FIELDS.find((field) => field === name);
  return place === undefined || isHidden(place, form) ? "top" : place;
}

function conditionPlace(name: string, form: RuleForm): Place {
  const attribute = name.slice("conditions.".length);
  // The last one: of duplicate attributes it is the one that was sent.
  const row = form.conditions.findLastIndex((condition) => condition.attribute === attribute);
  return row < 0 ? "conditions" : `conditions.${row}`;
}

function isHidden(place: Place, form: RuleForm): boolean {
  const isQuota = ["tokens", "period", "burst_capacity", "refill", "max_wait"].includes(place);
  if (form.mode === "unlimited" && isQuota) return true;
  if (place === "burst_capacity") return isWindow(form.algorithm);
  if (place === "refill") return form.algorithm !== "token_bucket";
  if (place === "max_wait") return form.algorithm !== "leaky_bucket";
  return false;
}

/** Converts an error of the service. The name of the field is removed from its text if it is shown there. */
export function formErrorOf(problem: Problem, form: RuleForm): FormError {
  const place = placeOf(problem.field, form);
  const prefixes = [`${problem.field}: `, `${problem.field?.replace(/^rule\./, "")}: `];
  const prefix = place === "top" ? undefined : prefixes.find((prefix) => problem.detail.startsWith(prefix));
  return { place, text: prefix === undefined ? problem.detail : problem.detail.slice(prefix.length) };
}

/**
 * Errors that a body cannot express, so that the service would not find them: two conditions on one attribute, and a
 * named plan without its name, which would mean every plan.
 */
export function localErrorOf(form: RuleForm): FormError | undefined {
  const names = form.conditions.map((condition) => condition.attribute);
  const twice = names.findIndex((name, index) => names.indexOf(name) < index);
  if (twice >= 0)
    return { place: `conditions.${twice}`, text: `${names[twice]} is duplicated: combine its conditions` };
  if (form.planKind === "named" && form.plan === "") return { place: "plan", text: "enter the name of the plan" };
  return undefined;
}
