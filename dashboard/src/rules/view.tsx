/** Rules view: the table, and the editor or the history that the address opens. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "../api/client.ts";
import type { Rule } from "../api/types.ts";
import { formatCount } from "../format.ts";
import { hrefOf, replaceAddress, useRoute } from "../route.ts";
import { asProblem, type LoadState, useLoad } from "../ui/load.ts";
import { Notice } from "../ui/notice.tsx";
import { usePoll } from "../ui/poll.ts";
import { showToast } from "../ui/toasts.tsx";
import { DeleteRule } from "./delete.tsx";
import { EditorSheet } from "./editor/sheet.tsx";
import { Filters } from "./filters.tsx";
import { HistorySheet } from "./history.tsx";
import {
  type AllRules,
  type Filter,
  filterOf,
  filterRules,
  isChangeable,
  loadCounts,
  loadRules,
  namesOf,
  pageOf,
  paramsOf,
  plansOf,
  type RuleCounts,
  STATS_RULES_MAX,
} from "./list.ts";
import { RulesTable } from "./table.tsx";
import "./rules.css";

/** Polling interval of the counts of the last minute. */
const COUNTS_EVERY_MS = 5000;
/** Appended to the message after every change. */
const IN_FORCE = "In force here at once, in other processes within two seconds.";

export function RulesView(): JSX.Element {
  const { params } = useRoute();
  const list = useLoad(loadRules, []);
  const rules = list.value?.rules ?? [];
  const filter = filterOf(params);
  const page = params.get("page") ?? "";
  const href = (more: Record<string, string>) => hrefOf("rules", { ...paramsOf(filter), page, ...more });
  const close = () => replaceAddress(href({}));
  const heading = useRef<HTMLHeadingElement>(null);
  const canChange = list.value !== undefined && isChangeable(list.value.source);
  const saved = (rule: Rule, isNew: boolean) => {
    list.reload();
    showToast(`Rule ${rule.rule_id} ${isNew ? "created" : "saved"}. ${IN_FORCE}`);
  };
  return (
    <>
      <div class="view-head">
        <div>
          <h1 ref={heading} tabIndex={-1}>
            Rules
          </h1>
          <p>A request is allowed only if every rule that applies to it allows it.</p>
        </div>
        <div class="row">
          {canChange && (
            <>
              <a class="button" href={href({ history: "all" })}>
                History
              </a>
              <a class="button primary" href={href({ rule: "new" })}>
                New rule
              </a>
            </>
          )}
        </div>
      </div>
      <ListNotices list={list} />
      {list.value !== undefined && (
        <RuleList
          rules={rules}
          filter={filter}
          page={page}
          isChangeable={canChange}
          href={href}
          onChanged={list.reload}
          onGone={() => heading.current?.focus()}
        />
      )}
      <EditorSheet
        ruleId={params.get("rule")}
        from={params.get("from")}
        plans={plansOf(rules)}
        names={namesOf(rules)}
        source={list.value?.source}
        href={href}
        onSaved={saved}
        onClose={close}
      />
      <HistorySheet ruleId={params.get("history")} isChangeable={canChange} href={href} onClose={close} />
    </>
  );
}

/** Notices about the rules as a whole: errors, invalid or read-only rules. */
function ListNotices({ list }: { readonly list: LoadState<AllRules> }): JSX.Element {
  const { value, problem } = list;
  return (
    <>
      {problem !== undefined && (
        <Notice kind="error">
          <div class="row">
            <span>Could not load the rules: {problem.detail}</span>
            <button type="button" class="button" onClick={list.reload}>
              Try again
            </button>
          </div>
        </Notice>
      )}
      {value === undefined && problem === undefined && <p class="muted">Loading…</p>}
      {typeof value?.refused === "string" && (
        <Notice kind="warning">
          <strong>The current rules are not valid. The last valid rules stay in force.</strong>
          <pre class="key refused">{value.refused}</pre>
        </Notice>
      )}
      {value !== undefined && !isChangeable(value.source) && (
        <Notice kind="info">
          {value.source === "starter" ? (
            "These are the starter rules, which are read-only. Configure a database or a rules file to change them."
          ) : (
            <>
              These rules come from the file <span class="key">{value.source}</span> and are read-only here. Changes to
              the file take effect when it is saved.
            </>
          )}
        </Notice>
      )}
    </>
  );
}

interface RuleListProps {
  readonly rules: readonly Rule[];
  readonly filter: Filter;
  readonly page: string;
  readonly isChangeable: boolean;
  readonly href: (params: Record<string, string>) => string;
  readonly onChanged: () => void;
  /** Called when the focused row was deleted. */
  readonly onGone: () => void;
}

function RuleList(props: RuleListProps): JSX.Element {
  const { rules, filter, href, onChanged } = props;
  const [abort, setLeaving] = useState<Rule>();
  const [deleted, setDeleted] = useState(0);
  // After the dialog is closed: a modal dialog keeps the focus.
  useEffect(() => {
    if (deleted > 0) props.onGone();
  }, [deleted]);
  const counts = useCounts(rules.length <= STATS_RULES_MAX);
  const found = filterRules(rules, filter);
  const { rows, page, pages } = pageOf(found, Number(props.page || 1));
  if (rules.length === 0) return <Empty isChangeable={props.isChangeable} href={href} />;
  return (
    <>
      <Filters
        filter={filter}
        plans={plansOf(rules)}
        onChange={(next) => replaceAddress(hrefOf("rules", paramsOf(next)))}
      />
      <p class="muted small" role="status">
        {found.length === rules.length
          ? `${formatCount(rules.length)} ${rules.length === 1 ? "rule" : "rules"}`
          : `${formatCount(found.length)} of ${formatCount(rules.length)} rules`}
      </p>
      {found.length === 0 ? (
        <div class="panel">
          <p>No rules match.</p>
          <div class="row">
            <a class="button" href={hrefOf("rules")}>
              Show all rules
            </a>
          </div>
        </div>
      ) : (
        <RulesTable
          rules={rows}
          counts={counts}
          isChangeable={props.isChangeable}
          href={href}
          onSwitch={(rule) => switchRule(rule, onChanged)}
          onDelete={setLeaving}
        />
      )}
      {pages > 1 && <Pages page={page} pages={pages} href={href} />}
      {abort !== undefined && (
        <DeleteRule
          rule={abort}
          onClose={() => setLeaving(undefined)}
          onDeleted={() => {
            setLeaving(undefined);
            setDeleted((times) => times + 1);
            onChanged();
          }}
        />
      )}
    </>
  );
}

/** Activates or deactivates a rule. Changes only that column, whatever the others are by now. */
async function switchRule(rule: Rule, onChanged: () => void): Promise<void> {
  try {
    await call("PATCH", `/v1/rules/${rule.rule_id}`, { body: { is_active: !rule.is_active } });
    showToast(`Rule ${rule.rule_id} ${rule.is_active ? "deactivated" : "activated"}. ${IN_FORCE}`);
  } catch (thrown) {
    showToast(`Could not change rule ${rule.rule_id}: ${asProblem(thrown).detail}.`, "error");
  }
  onChanged();
}

/** The counts of the last minute, polled while the table is visible. */
function useCounts(isWanted: boolean): RuleCounts | undefined {
  const { value } = usePoll(isWanted ? loadCounts : undefined, COUNTS_EVERY_MS, [isWanted]);
  return isWanted ? value : undefined;
}

function Empty({ isChangeable, href }: Pick<RuleListProps, "isChangeable" | "href">): JSX.Element {
  return (
    <div class="panel rules-empty">
      <h2>No rules</h2>
      <p class="muted">
        Every request is allowed. A rule limits the requests of a user, an IP address, an endpoint or all clients.
      </p>
      {isChangeable && (
        <div class="row">
          <a class="button primary" href={href({ rule: "new" })}>
            Create the first rule
          </a>
        </div>
      )}
    </div>
  );
}

function Pages({
  page,
  pages,
  href,
}: { readonly page: number; readonly pages: number } & Pick<RuleListProps, "href">): JSX.Element {
  return (
    <nav class="row" aria-label="Pages of rules">
      {page > 1 && (
        <a class="button" href={href({ page: String(page - 1) })}>
          Previous
        </a>
      )}
      <span class="muted">
        Page {page} of {pages}
      </span>
      {page < pages && (
        <a class="button" href={href({ page: String(page + 1) })}>
          Next
        </a>
      )}
    </nav>
  );
}
