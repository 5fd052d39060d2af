/** Table of violations, newest first. */

import type { JSX } from "preact";
import type { Rule, Violation } from "../api/types.ts";
import { formatCount, formatTime } from "../format.ts";
import { hrefOf } from "../route.ts";
import { Key } from "../ui/key.tsx";
import { subjectOf } from "./subject.ts";
import { timesOf } from "./times.ts";

interface TableProps {
  readonly violations: readonly Violation[];
  readonly rules: ReadonlyMap<number | null, Rule>;
}

export function ViolationTable({ violations, rules }: TableProps): JSX.Element {
  return (
    <div class="table-wrap">
      <table class="table violations-table">
        <thead>
          <tr>
            <th scope="col" rowSpan={2}>
              When (UTC)
            </th>
            <th scope="col" rowSpan={2} class="number">
              Denials
            </th>
            <th scope="col" rowSpan={2}>
              Mode
            </th>
            <th scope="col" rowSpan={2}>
              Rule
            </th>
            <th scope="col" rowSpan={2}>
              Bucket
            </th>
            <th scope="colgroup" colSpan={4} class="violations-first">
              First denied request of the minute
            </th>
          </tr>
          <tr>
            <th scope="col">User</th>
            <th scope="col">IP address</th>
            <th scope="col">Request</th>
            <th scope="col" class="number">
              Tokens left
            </th>
          </tr>
        </thead>
        <tbody>
          {violations.map((violation, index) => (
            <Row
              key={violation.violation_id}
              violation={violation}
              rule={rules.get(violation.rule_id)}
              isSameDay={dayOf(violation) === dayOf(violations[index - 1])}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface RowProps {
  readonly violation: Violation;
  readonly rule: Rule | undefined;
  /** True if the row above is of the same day, which is then not repeated. */
  readonly isSameDay: boolean;
}

function Row({ violation, rule, isSameDay }: RowProps): JSX.Element {
  const isShadow = violation.mode === "shadow";
  const request = [violation.method, violation.endpoint].filter((text) => text !== null);
  const subject = rule === undefined ? undefined : subjectOf(rule.key_pattern, violation);
  return (
    <tr>
      <td data-label="When" class="violations-when">
        <span>
          <span class={isSameDay ? "violations-day is-same" : "violations-day"}>{dayOf(violation)}</span>{" "}
          {timesOf(violation)}
        </span>
      </td>
      <td data-label={isShadow ? "Would be denied" : "Denials"} class={isShadow ? "number in-shadow" : "number"}>
        <strong>{formatCount(violation.count)}</strong>
      </td>
      <td data-label="Mode">
        {isShadow ? (
          <span class="badge shadow" title="The requests were allowed: a rule in shadow mode only records denials.">
            ◌ shadow
          </span>
        ) : (
          <span class="badge denied">✕ enforce</span>
        )}
      </td>
      <td data-label="Rule">
        <a href={hrefOf("rules", { rule: violation.rule_id })}>
          {violation.rule_id} {rule !== undefined && <Key text={rule.key_pattern} />}
        </a>
      </td>
      <td data-label="Bucket">
        <Key
          isClamped
          text={violation.bucket_key}
          href={subject ? hrefOf("live", { rule: violation.rule_id, subject }) : undefined}
        />
      </td>
      <td data-label="First user">
        <CellText text={violation.user_id} />
      </td>
      <td data-label="First address">
        <CellText text={violation.ip_address} />
      </td>
      <td data-label="First request">
        <CellText text={request.length === 0 ? null : request.join(" ")} />
      </td>
      <td data-label="Tokens left" class="number">
        {formatCount(violation.tokens_at_time)}
      </td>
    </tr>
  );
}

function CellText({ text }: { readonly text: string | null }): JSX.Element {
  if (text === null) return <span class="muted">–</span>;
  return <Key isClamped text={text} />;
}

function dayOf(violation: Violation | undefined): string | undefined {
  return violation === undefined ? undefined : formatTime(violation.requested_at).slice(0, 10);
}
