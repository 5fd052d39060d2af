/** History view: acts of administration, by whom, from where, and why. */

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { onClock, serviceAheadMs } from "../api/clock.ts";
import { loadRules } from "../api/rules.ts";
import { formatCount } from "../format.ts";
import { goTo, hrefOf, useRoute } from "../route.ts";
import { Export } from "../ui/export.tsx";
import type { Query } from "../ui/export-pages.ts";
import { useLoad } from "../ui/load.ts";
import { useStore } from "../ui/store.ts";
import { SearchForm } from "./form.tsx";
import { useHistory } from "./load.ts";
import { Records } from "./records.tsx";
import { paramsOf, queryOf, type Search, searchOf } from "./search.ts";

/** Records per page. */
const PAGE = 50;

const SOURCE = { path: "/v1/history", member: "history" };

export function HistoryView(): JSX.Element {
  const { params } = useRoute();
  const address = paramsOf(searchOf(params)).toString();
  const [times, setTimes] = useState(0);
  const search = useMemo(() => searchOf(new URLSearchParams(address)), [address]);
  const aheadMs = useStore(onClock, serviceAheadMs);
  // "Last hour" ends at the time of the search, by the clock of the service.
  const isCountedBack = search.last !== "";
  const query = useMemo(() => queryOf(search, Date.now() + aheadMs), [search, times, isCountedBack && aheadMs]);
  const start = (next: Search) => {
    const params = paramsOf(next);
    if (params.toString() === address) setTimes((times) => times + 1);
    else goTo(hrefOf("history", params));
  };
  return (
    <>
      <div class="view-head">
        <div>
          <h1>History</h1>
          <p>Every change of rules, overrides, buckets, callers and tokens: who made it, from where, and why.</p>
        </div>
        <Export source={SOURCE} query={query} />
      </div>
      <Found key={`${address} ${times}`} search={search} query={query} onSearch={start} />
    </>
  );
}

interface FoundProps {
  readonly search: Search;
  readonly query: Query;
  readonly onSearch: (search: Search) => void;
}

function Found({ search, query, onSearch }: FoundProps): JSX.Element {
  const rules = useLoad(loadRules, []);
  const state = useHistory(query, PAGE);
  const isNarrow = Object.keys(query).length > 0;
  const count = state.records?.length ?? 0;
  return (
    <>
      <SearchForm search={search} rules={rules.value ?? []} problem={state.problem} onSearch={onSearch} />
      <section class="panel" aria-labelledby="history-found" aria-busy={state.isLoading}>
        <div class="panel-head">
          <h2 id="history-found">Records</h2>
          <div class="row">
            <p class="muted small" role="status">
              {count > 0 &&
                `${state.hasOlder ? "the newest " : ""}${formatCount(count)} ${count === 1 ? "record" : "records"}`}
            </p>
            <button type="button" class="button quiet" onClick={state.reload}>
              Refresh
            </button>
          </div>
        </div>
        <Records
          state={state}
          empty={
            isNarrow
              ? "No records match. Remove a filter or extend the time range."
              : "No records yet. The next change appears here."
          }
        />
      </section>
    </>
  );
}
