/** Warnings about the service, with their consequences. */

import type { LiveTick } from "../api/types.ts";
import { formatCount } from "../format.ts";

export interface Warning {
  readonly what: "store" | "database" | "rules" | "audit";
  /** For the headline. */
  readonly short: string;
  readonly means: string;
}

/** Warnings, the most severe first. `degraded` is the number of recent decisions made without the store. */
export function warningsOf(tick: LiveTick, degraded: number): Warning[] {
  const warnings: Warning[] = [];
  if (tick.store.is_in_trouble || degraded > 0) {
    const many = degraded > 0 ? `${formatCount(degraded)} recent decisions were made without it. ` : "";
    warnings.push({
      what: "store",
      short: "Degraded",
      means: `The store does not answer. ${many}Each rule is decided by its on_error: local counts in this process only, allow allows everything, deny denies everything. Limits are not exact until the store is back.`,
    });
  }
  if (tick.rules_refused !== null) {
    warnings.push({
      what: "rules",
      short: "Rules invalid",
      means: `The rules in their source are not valid: ${tick.rules_refused}. The last valid rules stay in force.`,
    });
  }
  if (tick.database.is_in_trouble) {
    warnings.push({
      what: "database",
      short: "Database down",
      means:
        "The database does not answer. Checks continue with the rules in force. Rules and overrides cannot be changed, and violations are not written until it is back.",
    });
  }
  if (tick.audit.dropped > 0) {
    warnings.push({
      what: "audit",
      short: "Violations lost",
      means: `${formatCount(tick.audit.dropped)} violations since the start were not recorded: too many at once, refused by the database, or their subject was deleted. Decisions are not affected.`,
    });
  }
  return warnings;
}
