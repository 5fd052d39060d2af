/** The last violations of a subject. */

import type { JSX } from "preact";
import { call } from "../../api/client.ts";
import type { Violation, ViolationList } from "../../api/types.ts";
import { formatCount, formatTime } from "../../format.ts";
import { hrefOf } from "../../route.ts";
import { Key } from "../../ui/key.tsx";
import { Notice } from "../../ui/notice.tsx";
import { usePoll } from "../../ui/poll.ts";
import { newest, type Search } from "./violation-search.ts";

/** The most that are shown here; the view of violations has all of them. */
const VIOLATIONS_MAX = 8;
const EVERY_MS = 5000;

interface LastViolationsProps {
  /** Finds those of the bucket that the panel is about, once it is known. */
  readonly own: Search | undefined;
  /** Find those of all its buckets, as far as they are known. */
  readonly searches: readonly Search[];
  /** Whether its buckets were looked into. */
  readonly isLoaded: boolean;
  /** Asks again when it changes. */
  readonly changes: number;
}

export function LastViolations({ own, searches, isLoaded, changes }: LastViolationsProps): JSX.Element {
  const list = usePoll(
    async (signal) => {
      if (searches.length === 0) return undefined;
      const ask = (search: Search) =>
        call<ViolationList>("GET", "/v1/violations", { query: { ...search, limit: VIOLATIONS_MAX }, signal });
      const lists = await Promise.all(searches.map(ask));
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
        <h3 id="its-violations-heading">Its violations</h3>
        {own !== undefined && <a href={searchHref(own)}>All of this bucket</a>}
      </div>
      {list.problem !== undefined && <Notice kind="error">{list.problem.detail}</Notice>}
      {isLoaded && searches.length === 0 && <p class="muted">Not known before its bucket is.</p>}
      {rows?.length === 0 && (
        <p class="muted">
          None on record under the names of its buckets. If the audit hides or cuts names, look under what it keeps.
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
