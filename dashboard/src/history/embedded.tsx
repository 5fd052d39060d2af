/** The records about one subject or rule, inside another view. */

import type { JSX } from "preact";
import { hrefOf } from "../route.ts";
import type { Query } from "../ui/export-pages.ts";
import { useHistory } from "./load.ts";
import { Records } from "./records.tsx";

/** Records per page. */
const PAGE = 10;

interface EmbeddedProps {
  readonly title: string;
  readonly query: Query;
  /** Loads again when it changes. */
  readonly changes: number;
  readonly empty: string;
}

export function EmbeddedHistory(props: EmbeddedProps): JSX.Element {
  return <Content key={JSON.stringify(props.query)} {...props} />;
}

function Content({ title, query, changes, empty }: EmbeddedProps): JSX.Element {
  const state = useHistory(query, PAGE, changes);
  return (
    <section aria-labelledby="its-history-heading">
      <div class="section-head">
        <h3 id="its-history-heading">{title}</h3>
        <a href={hrefOf("history", query)}>Search in the history</a>
      </div>
      <Records state={state} empty={empty} />
    </section>
  );
}
