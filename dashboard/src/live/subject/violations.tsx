/** Recent violations of a subject. */

import type { JSX } from "preact";
import { call } from "../../api/client.ts";
import type { Violation, ViolationList } from "../../api/types.ts";
import { formatCount, formatTime } from "../../format.ts";
import { hrefOf } from "../../route.ts";
import { Key } from "../../ui/key.tsx";
import { Notice } from "../../ui/notice.tsx";
import { usePoll } from "../../ui/poll.ts";
import { newest, type Search } from "./violation-search.ts";

/** The most violations shown here; the violations view has all. */
const VIOLATIONS_MAX = 8;
const EVERY_MS = 5000;

interface LastViolationsProps {
  /** Search for the panel's bucket, once it is known. */
  readonly own: Search | undefined;
  /** Searches for all known buckets of the subject. */
  readonly searches: readonly Search[];
  /** True if the buckets are loaded. */
  readonly isLoaded: boolean;
  /** Loads again when it changes. */
  readonly changes: number;
}

export function LastViolations({ own, searches, isLoaded, changes }: LastViolationsProps): JSX.Element {
  const list = usePoll(
    async (signal) => {
      if (searches.length === 0) return undefined;
      const load = (search: Search) =>
        call<ViolationList>("GET", "/v1/violations", { query: { ...search, limit: VIOLATIONS_MAX }, signal });
      const lists = await Promise.all(searches.map(load));
      return newest(
        lists.map(({ violations }) => violations),
        VIOLATIONS_MAX,
      );
    },
    EVERY_MS,
    [JSON.stringify(searches), changes],
  );
  const rows = list.value;
  return (
    <section aria-labelledby="its-violations-heading">
      <div class="section-head">
        <h3 id="its-violations-heading">Violations</h3>
        {own !== undefined && <a href={searchHref(own)}>All violations of this bucket</a>}
      </div>
      {list.problem !== undefined && <Notice kind="error">{list.problem.detail}</Notice>}
      {isLoaded && searches.length === 0 && <p class="muted">Enter the missing values above to see violations.</p>}
      {rows?.length === 0 && (
        <p class="muted">
          None recorded for these buckets. If the audit hides or truncates names, search for the pseudonym.
        </p>
      )}
      {rows !== undefined && rows.length > 0 && <Rows rows={rows} />}
    </section>
  );
}

function searchHref(search: Search): string {
  return hrefOf("violations", search);
}

function Rows({ rows }: { readonly rows: readonly Violation[] }): JSX.Element {
  return (
    <ul class="violations">
      {rows.map((row) => (
        <li key={row.violation_id} class="violation">
          <div>
            <Key text={row.bucket_key} href={searchHref({ bucket_key: row.bucket_key })} />{" "}
            {row.mode === "shadow" && <span class="badge shadow">shadow</span>}
            <div class="muted small">
              <span class="violation-time">{formatTime(row.last_at)} UTC</span>, by{" "}
              <a href={hrefOf("rules", { rule: row.rule_id })}>rule {row.rule_id}</a>
              {row.endpoint !== null && (
                <>
                  , at <Key text={row.endpoint} />
                </>
              )}
            </div>
          </div>
          <div class={row.mode === "shadow" ? "violation-count is-shadow" : "violation-count is-denied"}>
            <b>{formatCount(row.count)}</b>{" "}
            <span class="small">{row.mode === "shadow" ? "would be denied" : "denied"}</span>
          </div>
        </li>
      ))}
    </ul>
  );
}
