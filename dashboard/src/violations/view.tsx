/** Violations view: search, timeline, top offenders and table. */

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { onClock, serviceAheadMs } from "../api/clock.ts";
import { loadRules } from "../api/rules.ts";
import type { Rule, TopBy } from "../api/types.ts";
import { formatCount } from "../format.ts";
import { goTo, hrefOf, replaceAddress, useRoute } from "../route.ts";
import { Export } from "../ui/export.tsx";
import type { Query } from "../ui/export-pages.ts";
import { useLoad } from "../ui/load.ts";
import { Notice } from "../ui/notice.tsx";
import { useStore } from "../ui/store.ts";
import { Empty } from "./empty.tsx";
import { SearchForm } from "./form.tsx";
import { type SearchState, useViolations } from "./load.ts";
import { paramsOf, queryOf, type Search, searchOf } from "./search.ts";
import { ViolationTable } from "./table.tsx";
import { timelineOf } from "./timeline.ts";
import { TimelineChart } from "./timeline-chart.tsx";
import { TOP_BY, Top } from "./top.tsx";
import "./violations.css";

const SOURCE = { path: "/v1/violations", member: "violations" };
/** Rows added to the table at a time. */
const SHOWN_STEP = 100;
/** The most rows in the table; an export has more. */
const SHOWN_MAX = 1000;

export function ViolationsView(): JSX.Element {
  const { params } = useRoute();
  const address = paramsOf(searchOf(params)).toString();
  const by = TOP_BY.find(([name]) => name === params.get("by"))?.[0] ?? "bucket_key";
  const [times, setTimes] = useState(0);
  const search = useMemo(() => searchOf(new URLSearchParams(address)), [address]);
  const aheadMs = useStore(onClock, serviceAheadMs);
  // "Last hour" ends at the time of the search, by the clock of the service, which records violations.
  const isCountedBack = search.last !== "";
  const query = useMemo(() => queryOf(search, Date.now() + aheadMs), [search, times, isCountedBack && aheadMs]);
  const rules = useLoad(loadRules, []);
  const found = useViolations(query);
  const goBy = (search: Search, by: TopBy) => {
    const params = paramsOf(search);
    if (by !== "bucket_key") params.set("by", by);
    return hrefOf("violations", params);
  };
  const start = (next: Search) => {
    if (paramsOf(next).toString() === address) setTimes((times) => times + 1);
    else goTo(goBy(next, by));
  };
  return (
    <>
      <div class="view-head">
        <div>
          <h1>Violations</h1>
          <p>
            A violation counts the denials of one bucket by one rule within a minute. Its user, IP address and endpoint
            are those of the first denied request.
          </p>
        </div>
        <Export source={SOURCE} query={query} />
      </div>
      <SearchForm key={address} search={search} rules={rules.value ?? []} problem={found.problem} onSearch={start} />
      {found.problem !== undefined && <Notice kind="error">{found.problem.detail}</Notice>}
      {found.rows.length > 0 && (
        <div class="violations-charts">
          <SearchTimeline found={found} query={query} />
          <Top search={search} query={query} by={by} onBy={(by) => replaceAddress(goBy(search, by))} />
        </div>
      )}
      <SearchRows
        key={address}
        found={found}
        rules={rules.value ?? []}
        search={search}
        onAgain={() => setTimes((times) => times + 1)}
      />
    </>
  );
}

/** Description of the violations loaded. */
function ofWhat({ rows, next }: SearchState): string {
  const count = `${formatCount(rows.length)} ${rows.length === 1 ? "violation" : "violations"}`;
  return next === null ? `of ${rows.length === 1 ? "" : "all "}${count}` : `of the newest ${count} (there are more)`;
}

function SearchTimeline({ found, query }: { readonly found: SearchState; readonly query: Query }): JSX.Element {
  const timeline = useMemo(() => {
    const secondsOf = (name: string) => (query[name] === undefined ? undefined : Date.parse(query[name]) / 1000);
    // While older violations are not loaded, the time before the oldest is unknown, not empty.
    const from = found.next === null ? secondsOf("from") : undefined;
    const now = query["from"] === undefined ? undefined : (Date.now() + serviceAheadMs()) / 1000;
    return timelineOf(found.rows, { from, to: secondsOf("to") ?? now });
  }, [found.rows, found.next, query]);
  return <TimelineChart timeline={timeline} of={ofWhat(found)} />;
}

interface RowsProps {
  readonly found: SearchState;
  readonly rules: readonly Rule[];
  readonly search: Search;
  readonly onAgain: () => void;
}

function SearchRows({ found, rules, search, onAgain }: RowsProps): JSX.Element | null {
  const [count, setCount] = useState(SHOWN_STEP);
  const byId = useMemo(() => new Map(rules.map((rule) => [rule.rule_id, rule])), [rules]);
  const shown = useMemo(() => found.rows.slice(0, count), [found.rows, count]);
  const hasLoaded = found.rows.length > shown.length;
  const isComing = found.isLoading && found.next !== null;
  const isNarrow = paramsOf(search).toString() !== "";
  const isByFirst = [search.user_id, search.ip, search.endpoint].some((text) => text !== "");
  if (found.rows.length === 0) {
    if (found.problem !== undefined) return null;
    return (
      <section class="panel">{found.isLoaded ? <Empty isNarrow={isNarrow} /> : <p class="muted">Loading…</p>}</section>
    );
  }
  return (
    <section class="panel" aria-labelledby="violations-found" aria-busy={!found.isLoaded}>
      <div class="panel-head">
        <h2 id="violations-found">Recorded violations</h2>
        <div class="row">
          <p class="muted small" role="status">
            {formatCount(shown.length)} {ofWhat(found)}
            {found.at !== undefined && `, as at ${found.at} UTC`}
          </p>
          <button type="button" class="button quiet" onClick={onAgain}>
            Refresh
          </button>
        </div>
      </div>
      {isByFirst && (
        <p class="small violations-caution">
          User, IP address and endpoint are compared with the first denied request of each violation only. Violations
          that started with a request of another client are missing. Search by bucket to find all.
        </p>
      )}
      <ViolationTable violations={shown} rules={byId} />
      {(hasLoaded || isComing) && count < SHOWN_MAX && (
        <div>
          <button type="button" class="button" disabled={!hasLoaded} onClick={() => setCount(count + SHOWN_STEP)}>
            Load more
          </button>
        </div>
      )}
      {hasLoaded && count >= SHOWN_MAX && (
        <p class="muted">Only {formatCount(SHOWN_MAX)} rows are shown: narrow the search or export it.</p>
      )}
    </section>
  );
}
