/** All rules at once, for those who need to know what there is. */

import { call } from "./client.ts";
import type { Rule, RuleList } from "./types.ts";

/** The most that the service lists at once. */
const PAGE = 1000;
/** More rules than these are not asked for. */
export const RULES_MAX = 5000;

/** The rules by id, up to `RULES_MAX` of them. */
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
