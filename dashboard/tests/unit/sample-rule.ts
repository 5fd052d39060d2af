/** A rule for tests. */

import type { Rule } from "../../src/api/types.ts";

/** Columns that decide nothing may be missing, so that a new one changes no test. */
const SAMPLE = {
  rule_id: 1,
  key_pattern: "user:{user_id}",
  scope: "user",
  rate_per_second: 10,
  tokens: 10,
  period: 1,
  burst_capacity: 50,
  plan: null,
  algorithm: "token_bucket",
  refill: "continuous",
  max_wait: null,
  mode: "enforce",
  on_error: "local",
  path: "exact",
  is_active: true,
  description: "",
  conditions: {},
  name: null,
  replaces: [],
  created_at: null,
  version: 1,
} as Partial<Rule> as Rule;

export function sampleRule(columns: Partial<Rule> = {}): Rule {
  return { ...SAMPLE, ...columns };
}
