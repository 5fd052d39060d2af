/** Subjects with most denials in the last minute. */

import type { JSX } from "preact";
import type { LimitedSubject } from "../api/types.ts";
import { formatCount } from "../format.ts";
import { hrefOf, useRoute } from "../route.ts";
import { Key, PlanBadge } from "../ui/key.tsx";
import { byOf, liveHref, panelOfRow } from "./address.ts";
import { formatAgo } from "./figures.ts";

interface LimitedProps {
  readonly limited: readonly LimitedSubject[];
  readonly now: string;
}

export function Limited({ limited, now }: LimitedProps): JSX.Element {
  const denied = limited.filter(({ mode }) => mode !== "shadow");
  const shadow = limited.filter(({ mode }) => mode === "shadow");
  return (
    <section class="panel" aria-labelledby="limited-heading">
      <div>
        <h2 id="limited-heading" tabIndex={-1}>
          Top limited subjects
        </h2>
        <p class="muted small">Denials in the last minute. Open a subject to see its buckets.</p>
      </div>
      {denied.length === 0 ? <p class="muted">No denials in the last minute.</p> : <Rows rows={denied} now={now} />}
      {shadow.length > 0 && (
        <div class="limited-shadow">
          <h3>Would be denied (shadow)</h3>
          <p class="muted small">By rules in shadow mode, which allow every request.</p>
          <Rows rows={shadow} now={now} />
        </div>
      )}
    </section>
  );
}

/** Each list has its own scale, so that many denials in shadow mode do not make enforced ones look few. */
function Rows({ rows, now }: { readonly rows: readonly LimitedSubject[]; readonly now: string }): JSX.Element {
  const most = Math.max(...rows.map(({ denied }) => denied));
  return (
    <ol class="limited">
      {rows.map((row) => (
        <Row key={`${row.rule_id} ${row.mode} ${row.bucket_key} ${row.subject}`} row={row} now={now} most={most} />
      ))}
    </ol>
  );
}

function Row({ row, now, most }: { row: LimitedSubject; now: string; most: number }): JSX.Element {
  const { params } = useRoute();
  const isShadow = row.mode === "shadow";
  return (
    <li class="limited-row">
      <div class="limited-who">
        <Key
          text={row.subject === "" ? "(empty)" : row.subject}
          href={liveHref(byOf(params), panelOfRow(row))}
          isClamped
        />
        <div class="muted small limited-about">
          <span>
            by rule{" "}
            <a href={hrefOf("rules", { rule: row.rule_id })}>
              {row.rule_id} <Key text={row.key_pattern} />
            </a>
          </span>
          {row.plan !== null && <PlanBadge plan={row.plan} />}
          {isShadow && (
            <span class="badge shadow" title="The rule is in shadow mode: the requests were allowed.">
              shadow
            </span>
          )}
          {row.endpoint !== null && (
            <span title="Endpoint of the first denied request">
              at <Key text={row.endpoint} />
            </span>
          )}
        </div>
      </div>
      <div class="limited-count">
        <b class={isShadow ? "is-shadow" : "is-denied"}>{formatCount(row.denied)}</b>{" "}
        <span class="small">{isShadow ? "would be denied" : "denied"}</span>
        <div class="muted small">{formatAgo(row.last_at, now)}</div>
      </div>
      <div class={isShadow ? "limited-bar is-shadow" : "limited-bar"} aria-hidden="true">
        <div style={{ width: `${(row.denied / most) * 100}%` }} />
      </div>
    </li>
  );
}
