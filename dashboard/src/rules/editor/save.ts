/** Saving a rule, with detection of concurrent changes. */

import { call, type Problem } from "../../api/client.ts";
import type { Rule } from "../../api/types.ts";
import { asProblem } from "../../ui/load.ts";
import type { Versions } from "../conflict.ts";
import { type Body, bodyOf, type RuleForm } from "../form.ts";
import { dryRun } from "./check.ts";

export type SaveResult =
  | { readonly kind: "saved"; readonly rule: Rule }
  | { readonly kind: "conflict"; readonly versions: Versions }
  /** The rule was deleted. */
  | { readonly kind: "gone" }
  | { readonly kind: "refused"; readonly problem: Problem };

/** Creates the rule, or changes `base` if it is still the current version. */
export async function save(form: RuleForm, base: Rule | undefined, reason: string): Promise<SaveResult> {
  const body = bodyOf(form, base);
  try {
    const rule =
      base === undefined
        ? await call<Rule>("POST", "/v1/rules", { body, reason })
        : await call<Rule>("PUT", `/v1/rules/${base.rule_id}`, { body, reason, ifMatch: base.version });
    return { kind: "saved", rule };
  } catch (thrown) {
    const problem = asProblem(thrown);
    if (base === undefined) return { kind: "refused", problem };
    if (problem.status === 404) return { kind: "gone" };
    return problem.status === 412 ? compare(body, base) : { kind: "refused", problem };
  }
}

/** Loads their version, and mine as it would be saved now. */
async function compare(body: Body, base: Rule): Promise<SaveResult> {
  try {
    const theirs = await call<Rule>("GET", `/v1/rules/${base.rule_id}`);
    const mine = await dryRun(body, base.rule_id ?? undefined);
    return { kind: "conflict", versions: { base, mine, theirs } };
  } catch (thrown) {
    const problem = asProblem(thrown);
    return problem.status === 404 ? { kind: "gone" } : { kind: "refused", problem };
  }
}
