/** Table of the current rates of rules. */

import type { JSX } from "preact";
import { hrefOf } from "../route.ts";
import { Key, PlanBadge } from "../ui/key.tsx";
import { formatRate, formatShare, NOW_S, type RuleNow, rulesNow } from "./figures.ts";
import type { PastTick } from "./ticks.ts";

const NEVER = "Never: the cost is above the limit, or the subject is blocked. Waiting does not help.";

export function RulesNow({ history }: { readonly history: readonly PastTick[] }): JSX.Element {
  const rules = rulesNow(history);
  return (
    <section class="panel" aria-labelledby="rules-now-heading">
      <div>
        <h2 id="rules-now-heading">Active rules</h2>
        <p class="muted small">
          Rules with decisions in the last two minutes, busiest first. Figures are averages of the last {NOW_S} seconds.
          Every rule that applies to a request counts it.
        </p>
      </div>
      {rules.length === 0 ? (
        <p class="muted">No decisions in the last two minutes.</p>
      ) : (
        <div class="table-wrap">
          <table class="table rules-now">
            <thead>
              <tr>
                <th scope="col">Rule</th>
                <th scope="col" class="number">
                  Granted/s
                </th>
                <th scope="col" class="number">
                  Denied/s
                </th>
                <th scope="col" class="number">
                  Share denied
                </th>
              </tr>
            </thead>
            <tbody>
              {rules.map((row) => (
                <Row key={row.rule.rule_id} row={row} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {rules.some(({ never }) => never > 0) && <p class="muted small">{NEVER}</p>}
    </section>
  );
}

function Row({ row }: { readonly row: RuleNow }): JSX.Element {
  const { rule, allowed, denied, never, shareDenied } = row;
  const isShadow = rule.mode === "shadow";
  return (
    <tr>
      <th scope="row" class="rules-now-rule">
        <a href={hrefOf("rules", { rule: rule.rule_id })}>
          {rule.rule_id} <Key text={rule.key_pattern} />
        </a>{" "}
        {rule.plan !== null && <PlanBadge plan={rule.plan} />} <Mode mode={rule.mode} />
      </th>
      <td class="number">{formatRate(allowed)}</td>
      <td class={denied > 0 ? `number ${isShadow ? "is-shadow" : "is-denied"}` : "number"}>
        {formatRate(denied)}
        {never > 0 && <div class="small muted">{formatRate(never)} never</div>}
      </td>
      <td class="number">{formatShare(shareDenied)}</td>
    </tr>
  );
}

/** Badge of the mode; the tooltip explains it. */
function Mode({ mode }: { readonly mode: RuleNow["rule"]["mode"] }): JSX.Element {
  if (mode === "shadow") {
    return (
      <span class="badge shadow" title="Records denials, but allows the requests.">
        shadow
      </span>
    );
  }
  if (mode === "unlimited") {
    return (
      <span class="badge" title="Applies, but has no bucket and no limit.">
        unlimited
      </span>
    );
  }
  return (
    <span class="badge" title="Denies requests beyond its quota.">
      enforce
    </span>
  );
}
