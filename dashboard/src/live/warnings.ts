/** What is not as it should be, and what that means. */

import type { LiveTick } from "../api/types.ts";
import { formatCount } from "../format.ts";

export interface Warning {
  readonly what: "store" | "database" | "rules" | "audit";
  /** For the headline. */
  readonly short: string;
  readonly means: string;
}

/** The worst first. `degraded` is how many decisions of now were made without the store. */
export function warningsOf(tick: LiveTick, degraded: number): Warning[] {
  const warnings: Warning[] = [];
  if (tick.store.is_in_trouble || degraded > 0) {
    const many = degraded > 0 ? `${formatCount(degraded)} decisions of the last seconds were made without it. ` : "";
    warnings.push({
      what: "store",
      short: "Degraded",
      means: `The store is in trouble. ${many}Each rule answers by its on_error: local counts in this process only, allow lets all pass, deny none. Limits are not exact until it is back.`,
    });
  }
  if (tick.rules_refused !== null) {
    warnings.push({
      what: "rules",
      short: "Rules refused",
      means: `What the source of the rules holds now was refused: ${tick.rules_refused}. The last good set stays in force.`,
    });
  }
  if (tick.database.is_in_trouble) {
    warnings.push({
      what: "database",
      short: "Database down",
      means:
        "The database does not answer. Checks go on by the rules in force; changing rules and overrides, and the record of violations, wait for it.",
    });
  }
  if (tick.audit.dropped > 0) {
    warnings.push({
      what: "audit",
      short: "Violations lost",
      means: `${formatCount(tick.audit.dropped)} violations since the start are not on record: too many came at once, the database refused them, or their subject was deleted. Decisions are not affected.`,
    });
  }
  return warnings;
}
