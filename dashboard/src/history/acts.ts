/** Acts of administration, and their names on the page. */

import type { ActName } from "../api/types.ts";

const NAMES: Readonly<Record<ActName, string>> = {
  "rule.create": "Rule created",
  "rule.update": "Rule changed",
  "rule.delete": "Rule deleted",
  "rules.replace": "Rules replaced",
  "override.set": "Override set",
  "override.delete": "Override deleted",
  "override.expire": "Override expired",
  "bucket.reset": "Bucket reset",
  "bucket.grant": "Tokens granted",
  "bucket.refund": "Tokens refunded",
  "caller.create": "Caller created",
  "caller.update": "Caller changed",
  "caller.revoke": "Caller revoked",
  "caller.refund": "Refunds by a caller",
  "token.create": "Token created",
  "token.update": "Token changed",
  "token.revoke": "Token revoked",
  "sign_in.failed": "Sign-in failed",
  "violations.delete": "Violations deleted",
};

export const ACTS = Object.keys(NAMES) as ActName[];

/** The name of an act; that of the service if the page does not know it. */
export function actName(act: string): string {
  return ACTS.includes(act as ActName) ? NAMES[act as ActName] : act;
}
