/** Overrides of a rule. */

import type { JSX } from "preact";
import { call } from "../../api/client.ts";
import type { OverrideList } from "../../api/types.ts";
import { formatCount } from "../../format.ts";
import { hrefOf } from "../../route.ts";
import { useLoad } from "../../ui/load.ts";
import { visible } from "../../ui/visible.ts";
import { perWords, timeOf } from "../time.ts";

/** The most overrides shown. */
const OVERRIDES_SHOWN = 10;

type Override = OverrideList["overrides"][number];

/** Renders nothing without overrides, or if they could not be loaded: the editor does not depend on them. */
export function RuleOverrides({ ruleId }: { readonly ruleId: number }): JSX.Element | null {
  const { value } = useLoad(
    (signal) =>
      call<OverrideList>("GET", "/v1/overrides", { query: { rule_id: ruleId, limit: OVERRIDES_SHOWN }, signal }),
    [ruleId],
  );
  if (value === undefined || value.overrides.length === 0) return null;
  return (
    <section class="rule-overrides" aria-label="Overrides">
      <h3>Overrides</h3>
      <ul>
        {value.overrides.map((override) => (
          <li key={override.subject}>
            <a class="key" href={hrefOf("live", { rule: ruleId, subject: override.subject })}>
              {visible(override.subject)}
            </a>{" "}
            <span class="muted">{overrideWords(override)}</span>
          </li>
        ))}
      </ul>
      {value.next !== null && <p class="small muted">Only the first {OVERRIDES_SHOWN} are shown.</p>}
    </section>
  );
}

function overrideWords({ kind, tokens, period, burst_capacity: burst }: Override): string {
  if (kind !== "quota" || tokens === null || period === null) return kind;
  const rate = `${formatCount(tokens)} per ${perWords(timeOf(period))}`;
  return burst === null ? rate : `burst ${formatCount(burst)}, ${rate}`;
}
