/** One record of the history. */

import type { JSX } from "preact";
import type { HistoryRecord } from "../api/types.ts";
import { formatCount, formatTime } from "../format.ts";
import { hrefOf } from "../route.ts";
import { RuleSummary } from "../rules/parts.tsx";
import { quotaWords } from "../rules/words.ts";
import { ColumnChanges } from "../ui/column-changes.tsx";
import { Key } from "../ui/key.tsx";
import { visible } from "../ui/visible.ts";
import { actName } from "./acts.ts";
import { differenceOf, isRule } from "./difference.ts";

interface RecordProps {
  readonly record: HistoryRecord;
}

export function RecordItem({ record }: RecordProps): JSX.Element {
  const { at, who, address, reason, count, outcome } = record;
  return (
    <li class="record">
      <div class="record-head">
        <span>
          <strong>{visible(actName(record.act))}</strong>
          <About record={record} />
          {count > 1 && (
            <>
              {" "}
              <span class="badge" title="Acts that were added up in one record">
                {formatCount(count)} times
              </span>
            </>
          )}
          {outcome === "failed" && (
            <>
              {" "}
              <span class="badge denied">✕ failed</span>
            </>
          )}
          {outcome === "started" && (
            <>
              {" "}
              <span class="badge" title="The process ended or lost the database before it recorded the result">
                ? not known
              </span>
            </>
          )}
        </span>
        <time class="muted small record-time" dateTime={at}>
          {formatTime(at)} UTC
        </time>
      </div>
      <p class="small">
        <span class="muted">by</span> <Key text={who} />
        {address !== null && (
          <>
            {" "}
            <span class="muted">from</span> <Key text={address} />
          </>
        )}
        {reason !== "" && (
          <>
            <span class="muted">: </span>
            <q class="record-reason">{visible(reason)}</q>
          </>
        )}
      </p>
      <Difference record={record} />
    </li>
  );
}

/** The rule, the subject and the name that the act is about. */
function About({ record: { rule_id, subject, target } }: RecordProps): JSX.Element {
  const isOfRule = rule_id !== null;
  return (
    <>
      {isOfRule && (
        <>
          {" "}
          <a href={hrefOf("rules", { rule: rule_id })}>rule {rule_id}</a>
        </>
      )}
      {target !== null && (
        <>
          {" "}
          <Key isClamped text={target} />
        </>
      )}
      {subject !== null && (
        <>
          <span class="muted">, subject</span>{" "}
          <Key isClamped text={subject} href={isOfRule ? hrefOf("live", { rule: rule_id, subject }) : undefined} />
        </>
      )}
    </>
  );
}

/** A change by its columns; what was created or deleted is folded. Absent without a known result: a failed act changed nothing. */
function Difference({ record: { before, after, outcome } }: RecordProps): JSX.Element | null {
  const changes = differenceOf(before, after);
  if (changes.length === 0 || outcome !== "done") return null;
  if (before !== null && after !== null) return <ColumnChanges changes={changes} />;
  const rule = after ?? before;
  return (
    <details class="record-values">
      <summary>{isRule(rule) ? <RuleLine rule={rule} /> : "Values"}</summary>
      <ColumnChanges changes={changes} />
    </details>
  );
}

function RuleLine({ rule }: { readonly rule: Parameters<typeof quotaWords>[0] }): JSX.Element {
  return (
    <>
      <RuleSummary rule={rule} />: {quotaWords(rule)}
    </>
  );
}
