/** How the store, the database, the rules and the audit fare, and what that means. */

import type { ComponentChildren, JSX } from "preact";
import type { LiveTick } from "../api/types.ts";
import { formatCount } from "../format.ts";
import { degradedNow } from "./figures.ts";
import type { Past } from "./ticks.ts";
import { type Trouble, troublesOf } from "./troubles.ts";

export function State({ last, history }: { last: LiveTick; history: readonly Past[] }): JSX.Element {
  const troubles = troublesOf(last, degradedNow(history));
  const of = (what: Trouble["what"]) => troubles.find((trouble) => trouble.what === what);
  const { noted, written, waiting } = last.audit;
  return (
    <section class="panel" aria-labelledby="state-heading">
      <h2 id="state-heading">State</h2>
      <dl class="states">
        <Item name="Store" trouble={of("store")}>
          {last.store.kind === "memory" ? "in the memory of this process" : `${last.store.kind} answers`}
        </Item>
        <Item name="Database" trouble={of("database")}>
          answers
        </Item>
        <Item name="Rules" trouble={of("rules")}>
          in force as they are in their source
        </Item>
        <Item name="Audit" trouble={of("audit")}>
          {noted === 0
            ? "no violations since the start"
            : `${formatCount(written)} of ${formatCount(noted)} violations on record, ${formatCount(waiting)} waiting`}
        </Item>
      </dl>
    </section>
  );
}

interface ItemProps {
  readonly name: string;
  readonly trouble: Trouble | undefined;
  /** What to say if there is none. */
  readonly children: ComponentChildren;
}

function Item({ name, trouble, children }: ItemProps): JSX.Element {
  return (
    <div class={trouble === undefined ? "state" : "state in-trouble"}>
      <dt>
        <span aria-hidden="true">{trouble === undefined ? "✓" : "!"}</span> {name}
      </dt>
      <dd>{trouble?.means ?? children}</dd>
    </div>
  );
}
