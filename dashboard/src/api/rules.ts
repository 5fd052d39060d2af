/** List of all rules, for suggestions and titles in other views. */

import { call } from "./client.ts";
import type { Rule, RuleList } from "./types.ts";

/** The largest page that the service returns. */
const PAGE = 1000;
/** Rules beyond this number are not loaded. */
export const RULES_MAX = 5000;

/** Loads the rules in the order of their ids, up to `RULES_MAX`. */
export async function loadRules(signal?: AbortSignal): Promise<readonly Rule[]> {
  const rules: Rule[] = [];
  let after: string | undefined;
  while (rules.length < RULES_MAX) {
    const page: RuleList = await call("GET", "/v1/rules", { query: { limit: PAGE, after }, ...(signal && { signal }) });
    rules.push(...page.rules);
    if (page.next === null) break;
    after = page.next;
  }
  return rules;
}
