/** Where in the form something is said about a field that the service names. */

import type { Problem } from "../api/client.ts";
import { FIELDS, type Field, isAdvancedField } from "./columns.ts";
import { isWindow, type RuleForm } from "./form.ts";

/** A field, a condition by its row, all conditions, or the top of the form for everything else. */
export type Place = Field | `conditions.${number}` | "top";

/** What is said, and where. */
export interface FormError {
  readonly place: Place;
  readonly text: string;
}

/** Whether the field is in the folded part of the editor, which must be opened to show it. */
export function isAdvanced(place: Place): boolean {
  const field = FIELDS.find((field) => field === place);
  return field !== undefined && isAdvancedField(field);
}

/** Where a field of the service is in the form. What is not to be seen there now belongs to the top. */
export function placeOf(field: string | undefined, form: RuleForm): Place {
  // A preview has the rule one level down.
  const name = field?.replace(/^rule\./, "") ?? "";
  if (name === "rate_per_second") return placeOf("tokens", form);
  if (name === "conditions" || name.startsWith("conditions.")) return conditionPlace(name, form);
  const place = FIELDS.find((field) => field === name);
  return place === undefined || isHidden(place, form) ? "top" : place;
}

function conditionPlace(name: string, form: RuleForm): Place {
  const attribute = name.slice("conditions.".length);
  // The last one: it is what was sent, where an attribute is there twice.
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

/** What the service says of a form. Its text begins with the field, which is where it is shown already. */
export function formErrorOf(problem: Problem, form: RuleForm): FormError {
  const place = placeOf(problem.field, form);
  const prefixes = [`${problem.field}: `, `${problem.field?.replace(/^rule\./, "")}: `];
  const prefix = place === "top" ? undefined : prefixes.find((prefix) => problem.detail.startsWith(prefix));
  return { place, text: prefix === undefined ? problem.detail : problem.detail.slice(prefix.length) };
}

/**
 * What a body cannot even say, and so the service would not see: two conditions on one attribute, and a named plan
 * without its name, which would be every plan.
 */
export function localErrorOf(form: RuleForm): FormError | undefined {
  const names = form.conditions.map((condition) => condition.attribute);
  const twice = names.findIndex((name, index) => names.indexOf(name) < index);
  if (twice >= 0)
    return { place: `conditions.${twice}`, text: `${names[twice]} has a condition already: each has one` };
  if (form.planKind === "named" && form.plan === "") return { place: "plan", text: "which plan? Name it" };
  return undefined;
}
