/** State of the store, the database, the rules and the audit. */

import type { ComponentChildren, JSX } from "preact";
import type { LiveTick } from "../api/types.ts";
import { formatCount } from "../format.ts";
import { degradedNow } from "./figures.ts";
import type { PastTick } from "./ticks.ts";
import { type Warning, warningsOf } from "./warnings.ts";

export function State({ last, history }: { last: LiveTick; history: readonly PastTick[] }): JSX.Element {
  const warnings = warningsOf(last, degradedNow(history));
  const of = (what: Warning["what"]) => warnings.find((warning) => warning.what === what);
  const { noted, written, waiting } = last.audit;
  return (
    <section class="panel" aria-labelledby="state-heading">
      <h2 id="state-heading">State</h2>
      <dl class="states">
        <Item name="Store" warning={of("store")}>
          {last.store.kind === "memory" ? "memory of this process" : `${last.store.kind} answers`}
        </Item>
        <Item name="Database" warning={of("database")}>
          answers
        </Item>
        <Item name="Rules" warning={of("rules")}>
          up to date with their source
        </Item>
        <Item name="Audit" warning={of("audit")}>
          {noted === 0
            ? "no violations since the start"
            : `${formatCount(written)} of ${formatCount(noted)} violations written, ${formatCount(waiting)} pending`}
        </Item>
      </dl>
    </section>
  );
}

interface ItemProps {
  readonly name: string;
  readonly warning: Warning | undefined;
  /** Shown without a warning. */
  readonly children: ComponentChildren;
}

function Item({ name, warning, children }: ItemProps): JSX.Element {
  return (
    <div class={warning === undefined ? "state" : "state in-trouble"}>
      <dt>
        <span aria-hidden="true">{warning === undefined ? "✓" : "!"}</span> {name}
      </dt>
      <dd>{warning?.means ?? children}</dd>
    </div>
  );
}
