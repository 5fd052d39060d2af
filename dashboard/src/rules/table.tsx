/** Table of rules. On a phone each row is a card. */

import type { JSX } from "preact";
import type { Rule } from "../api/types.ts";
import { formatCount } from "../format.ts";
import { hrefOf } from "../route.ts";
import { Key } from "../ui/key.tsx";
import { visible, visibleLines } from "../ui/visible.ts";
import type { RuleCounts } from "./list.ts";
import { Menu } from "./menu.tsx";
import { ModeBadge, RuleSummary, summaryText } from "./parts.tsx";
import { quotaWords } from "./words.ts";

interface TableProps {
  readonly rules: readonly Rule[];
  readonly counts: RuleCounts | undefined;
  /** True if the rules can be changed. */
  readonly isChangeable: boolean;
  /** The address of this view with other parameters. */
  readonly href: (params: Record<string, string>) => string;
  readonly onSwitch: (rule: Rule) => void;
  readonly onDelete: (rule: Rule) => void;
}

export function RulesTable(props: TableProps): JSX.Element {
  return (
    <div class="panel rules-panel">
      <table class="table rules-table">
        <thead>
          <tr>
            <th scope="col" class="number">
              #
            </th>
            <th scope="col">Rule</th>
            <th scope="col">Quota</th>
            <th scope="col">Plan</th>
            <th scope="col">Mode</th>
            {props.counts !== undefined && (
              <th scope="col" class="number">
                Last minute
              </th>
            )}
            <th scope="col">Active</th>
            <th scope="col">
              <span class="visually-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {props.rules.map((rule) => (
            <Row key={rule.rule_id} {...props} rule={rule} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row({
  rule,
  counts,
  isChangeable,
  href,
  onSwitch,
  onDelete,
}: TableProps & { readonly rule: Rule }): JSX.Element {
  const id = String(rule.rule_id);
  return (
    <tr class={rule.is_active ? "" : "is-off"}>
      <td class="number muted rule-id">{id}</td>
      <td class="rule-counts">
        <a href={href({ rule: id })} class="rule-link" aria-label={`Rule ${id}: ${summaryText(rule)}`}>
          <RuleSummary rule={rule} />
        </a>
        <div class="rule-about">
          <Key text={rule.key_pattern} />
          {rule.description !== "" && <bdi class="small rule-description">{visibleLines(rule.description)}</bdi>}
        </div>
      </td>
      <td class="rule-quota">{quotaWords(rule)}</td>
      <td class="rule-plan">
        {rule.plan === null ? <span class="muted">every plan</span> : <PlanName plan={visible(rule.plan)} />}
      </td>
      <td class="rule-mode">
        <ModeBadge mode={rule.mode} />
      </td>
      {counts !== undefined && (
        <td class="number rule-decided">
          <LastMinute counts={counts.get(rule.rule_id ?? 0)} isShadow={rule.mode === "shadow"} />
        </td>
      )}
      <td class="rule-switch">
        {isChangeable ? (
          <button
            type="button"
            role="switch"
            class="switch"
            aria-checked={rule.is_active}
            aria-label={`Rule ${id} active`}
            onClick={() => onSwitch(rule)}
          >
            <span class="switch-track" aria-hidden="true" />
            <span aria-hidden="true">{rule.is_active ? "on" : "off"}</span>
          </button>
        ) : (
          <span class="badge">{rule.is_active ? "on" : "off"}</span>
        )}
      </td>
      <td class="rule-menu">{isChangeable && <RowMenu rule={rule} href={href} onDelete={onDelete} />}</td>
    </tr>
  );
}

/** May be truncated; the tooltip has all of it. */
function PlanName({ plan }: { readonly plan: string }): JSX.Element {
  return <bdi title={plan}>{plan}</bdi>;
}

function RowMenu({
  rule,
  href,
  onDelete,
}: Pick<TableProps, "href" | "onDelete"> & { readonly rule: Rule }): JSX.Element {
  const id = String(rule.rule_id);
  return (
    <Menu label={`Actions for rule ${id}`}>
      <a class="menu-item" href={href({ rule: id })}>
        Edit
      </a>
      <a class="menu-item" href={href({ rule: "new", from: id })}>
        Duplicate
      </a>
      <a class="menu-item" href={href({ history: id })}>
        History
      </a>
      <a class="menu-item" href={hrefOf("violations", { rule_id: id })}>
        Violations
      </a>
      <button type="button" class="menu-item danger" onClick={() => onDelete(rule)}>
        Delete…
      </button>
    </Menu>
  );
}

interface LastMinuteProps {
  readonly counts: { granted: number; denied: number } | undefined;
  /** True if the denied requests were allowed. */
  readonly isShadow: boolean;
}

function LastMinute({ counts, isShadow }: LastMinuteProps): JSX.Element {
  if (counts === undefined || counts.granted + counts.denied === 0) return <span class="muted">–</span>;
  const words = isShadow ? "would be denied" : "denied";
  const denied = isShadow ? "shadow-count" : "denied-count";
  return (
    <>
      <span class="granted-count" title="granted">
        <span aria-hidden="true">✓</span> {formatCount(counts.granted)}
        <span class="visually-hidden"> granted, </span>
      </span>{" "}
      <span class={counts.denied > 0 ? denied : "muted"} title={words}>
        <span aria-hidden="true">{isShadow ? "◌" : "✕"}</span> {formatCount(counts.denied)}
        <span class={isShadow ? "small decided-words" : "visually-hidden"}> {words}</span>
      </span>
    </>
  );
}
