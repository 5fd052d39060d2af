/** Top offenders. */

import type { JSX } from "preact";
import { call } from "../api/client.ts";
import type { TopBy, TopOffenders } from "../api/types.ts";
import { formatCount, formatTime } from "../format.ts";
import { hrefOf } from "../route.ts";
import type { Query } from "../ui/export-pages.ts";
import { Key } from "../ui/key.tsx";
import { useLoad } from "../ui/load.ts";
import { Notice } from "../ui/notice.tsx";
import { paramsOf, type Search, topQueryOf } from "./search.ts";

const TOP_MAX = 10;

export const TOP_BY: readonly (readonly [TopBy, string])[] = [
  ["bucket_key", "Bucket"],
  ["user_id", "User"],
  ["ip", "IP address"],
  ["endpoint", "Endpoint"],
];

/** A violation belongs to one bucket, but records other attributes only of its first denied request. */
const OF_FIRST: Readonly<Partial<Record<TopBy, string>>> = { user_id: "user", ip: "IP address", endpoint: "endpoint" };

interface TopProps {
  readonly search: Search;
  readonly query: Query;
  readonly by: TopBy;
  readonly onBy: (by: TopBy) => void;
}

export function Top({ search, query, by, onBy }: TopProps): JSX.Element {
  // Requests in shadow mode were allowed: they are counted only if the search names that mode.
  const mode = search.mode === "shadow" ? "shadow" : "enforce";
  const parameters = { ...topQueryOf(query), mode, by, limit: TOP_MAX };
  const { value, problem, isLoading } = useLoad(
    (signal) => call<TopOffenders>("GET", "/v1/violations/top", { query: parameters, signal }),
    [query, by],
  );
  const most = value?.top[0]?.count ?? 1;
  const isNarrower = [search.user_id, search.ip, search.endpoint, search.bucket_key].some((text) => text !== "");
  return (
    <section class="panel" aria-labelledby="violations-top">
      <div class="panel-head">
        <h2 id="violations-top">{mode === "shadow" ? "Top offenders (shadow)" : "Top offenders"}</h2>
        <fieldset class="search-ranges" aria-label="Group by">
          {TOP_BY.map(([name, title]) => (
            <button key={name} type="button" class="button" aria-pressed={name === by} onClick={() => onBy(name)}>
              {title}
            </button>
          ))}
        </fieldset>
      </div>
      <p class="muted small">
        {"from" in query ? "In the time range of the search" : "In the last day"}
        {isNarrower && "; only its rule, mode and time range apply here"}.
        {search.mode === "" && (
          <>
            {" "}
            Without <a href={hrefOf("violations", withBy({ ...search, mode: "shadow" }, by))}>shadow mode</a>.
          </>
        )}
      </p>
      {OF_FIRST[by] !== undefined && (
        <p class="small violations-caution">
          A violation counts in full for the {OF_FIRST[by]} of its first denied request, even if others share the
          bucket. Only counts by bucket are exact.
        </p>
      )}
      {problem !== undefined && problem.field === undefined && <Notice kind="error">{problem.detail}</Notice>}
      {value !== undefined && value.top.length === 0 && !isLoading && <p class="muted">No denials.</p>}
      <ol class={`violations-top ${mode}`}>
        {value?.top.map(({ value: text, count, last_at }) => (
          <li key={`${text} ${last_at}`} title={`last at ${formatTime(last_at)} UTC`}>
            <Key isClamped text={text} href={hrefOf("violations", withBy({ ...search, [value.by]: text }, by))} />
            <span class="violations-count">{formatCount(count)}</span>
            <span class="violations-bar" aria-hidden="true">
              <span style={{ width: `${(count / most) * 100}%` }} />
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}

/** The address of a search with the current grouping. */
function withBy(search: Search, by: TopBy): URLSearchParams {
  const params = paramsOf(search);
  params.set("by", by);
  return params;
}
