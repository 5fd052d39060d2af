/** Charts of granted and denied decisions per second over the last two minutes. */

import type { JSX } from "preact";
import { useCallback, useMemo, useRef, useState } from "preact/hooks";
import { replaceAddress, useRoute } from "../route.ts";
import { Key } from "../ui/key.tsx";
import { visible } from "../ui/visible.ts";
import { type By, byOf, liveHref, panelOf } from "./address.ts";
import { busiest, formatRate } from "./figures.ts";
import { byRule, byTier, type Colours, coloursOf, type Group, SECONDS } from "./series.ts";
import { Stack } from "./stack.tsx";
import { HISTORY_S, type PastTick } from "./ticks.ts";
import "./traffic.css";

export function Traffic({ history }: { readonly history: readonly PastTick[] }): JSX.Element {
  const { params } = useRoute();
  const by = byOf(params);
  const colours = useRef<Colours>(new Map());
  const groups = useMemo(() => {
    if (by === "tier") return byTier(history);
    const wanted = busiest(history).map(({ rule_id }) => rule_id);
    colours.current = coloursOf(colours.current, wanted);
    return byRule(history, colours.current);
  }, [history, by]);
  const [at, setAt] = useState<number>();
  const point = useCallback((at: number | undefined) => setAt(at), []);
  const choose = (by: By) => replaceAddress(liveHref(by, panelOf(params)));
  return (
    <section class="panel" aria-labelledby="traffic-heading">
      <div class="traffic-head">
        <div>
          <h2 id="traffic-heading">Decisions per second</h2>
          <p class="muted small">
            {by === "tier"
              ? "Enforced rules by scope; take stands for buckets without a rule."
              : "By rule; rules in shadow mode deny nothing."}{" "}
            A request counts once for every rule that applies.{" "}
            {at === undefined || at === SECONDS.length - 1
              ? "Figures of the last second."
              : `Figures of ${-SECONDS[at]!} s ago.`}
          </p>
        </div>
        <fieldset class="choice">
          <legend class="visually-hidden">Group by</legend>
          {(["tier", "rule"] as const).map((name) => (
            <label key={name}>
              <input type="radio" name="by" checked={by === name} onChange={() => choose(name)} />
              <span class="choice-name">By {name}</span>
            </label>
          ))}
        </fieldset>
      </div>
      <div class="stacks">
        <h3 class="stack-name is-allowed">✓ Granted</h3>
        <Stack label={labelOf("Granted", by)} height={150} groups={groups} of="allowed" onPoint={point} />
        <h3 class="stack-name is-denied">✗ Denied</h3>
        <Stack label={labelOf("Denied", by)} height={110} groups={groups} of="denied" onPoint={point} />
      </div>
      <ul class="legend">
        {groups.map((group) => (
          <Entry key={group.key} group={group} at={at ?? SECONDS.length - 1} />
        ))}
      </ul>
    </section>
  );
}

function labelOf(what: string, by: By): string {
  return `${what} decisions per second over the last ${HISTORY_S} seconds, by ${by}; the list below has the figures`;
}

const TAKE = "Buckets without a rule: POST /v1/take, CL.THROTTLE, and limits in Envoy's descriptors.";

function Entry({ group, at }: { readonly group: Group; readonly at: number }): JSX.Element {
  const allowed = group.allowed[at] ?? null;
  const denied = group.denied[at] ?? null;
  return (
    <li class="legend-entry">
      <span class="legend-colour" style={{ background: `var(${group.colour})` }} aria-hidden="true" />
      <span class="legend-name" title={group.key === "take" ? TAKE : undefined}>
        <Key text={group.name} />
        {group.about !== "" && <span class="muted small key"> {visible(group.about)}</span>}
        {group.isShadow && <span class="badge shadow">shadow</span>}
      </span>
      <span class="legend-rates">
        <span class="is-allowed">
          <span aria-hidden="true">✓</span>
          <span class="visually-hidden">granted </span> {allowed === null ? "–" : formatRate(allowed)}
        </span>
        <span class={denied !== null && denied > 0 ? (group.isShadow ? "is-shadow" : "is-denied") : "muted"}>
          <span aria-hidden="true">✗</span>
          <span class="visually-hidden">{group.isShadow ? "would be denied " : "denied "}</span>{" "}
          {denied === null ? "–" : formatRate(denied)}
        </span>
      </span>
    </li>
  );
}
