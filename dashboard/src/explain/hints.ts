/** Suggestions for the form, from the rules in force. */

import type { Rule } from "../api/types.ts";
import { placeholders } from "../ui/pattern.ts";

/** The most suggestions for one field. */
const HINTS_MAX = 100;

export interface Hints {
  readonly plans: readonly string[];
  readonly endpoints: readonly string[];
  readonly methods: readonly string[];
  readonly attributes: readonly string[];
}

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];
const HAVE_FIELDS = new Set(["user_id", "ip", "endpoint", "method", "plan", "cost"]);
const ENDPOINT = "endpoint:";

export function hintsOf(rules: readonly Rule[]): Hints {
  const plans = new Set<string>();
  const endpoints = new Set<string>();
  const methods = new Set(METHODS);
  const attributes = new Set<string>();
  for (const rule of rules) {
    // `default` stands for plans that no rule names.
    if (rule.plan !== null && rule.plan !== "default") plans.add(rule.plan);
    for (const [name, glob] of Object.entries(rule.conditions)) {
      if (!HAVE_FIELDS.has(name)) attributes.add(name);
      // Globs and exceptions are not values that a request can have.
      if (/[*!|]/.test(glob)) continue;
      if (name === "endpoint") endpoints.add(glob);
      if (name === "method") methods.add(glob);
    }
    const names = placeholders(rule.key_pattern);
    for (const name of names) if (!HAVE_FIELDS.has(name)) attributes.add(name);
    if (rule.key_pattern.startsWith(ENDPOINT) && names.length === 0 && !rule.key_pattern.includes("*")) {
      endpoints.add(rule.key_pattern.slice(ENDPOINT.length));
    }
  }
  const first = (texts: Set<string>) => [...texts].slice(0, HINTS_MAX);
  return { plans: first(plans), endpoints: first(endpoints), methods: first(methods), attributes: first(attributes) };
}
