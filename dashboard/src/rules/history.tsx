/** History of changes, from which rules can be restored. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call, type Problem } from "../api/client.ts";
import type { ChangeList, Rule, RuleChange } from "../api/types.ts";
import { formatTime } from "../format.ts";
import { EmbeddedHistory } from "../history/embedded.tsx";
import { goTo } from "../route.ts";
import { ColumnChanges } from "../ui/column-changes.tsx";
import { asProblem, useLoad } from "../ui/load.ts";
import { Notice } from "../ui/notice.tsx";
import { visible } from "../ui/visible.ts";
import { changesOf } from "./columns.ts";
import { saveDraft } from "./drafts.ts";
import { formOf } from "./form.ts";
import { isRuleId } from "./list.ts";
import { RuleSummary } from "./parts.tsx";
import { NoSuchRule, Sheet } from "./sheet.tsx";
import { quotaWords } from "./words.ts";
import "./history.css";

/** Changes per page. */
const PAGE_CHANGES = 30;

interface HistoryProps {
  /** The number of a rule, `all`, or null for none. */
  readonly ruleId: string | null;
  readonly isChangeable: boolean;
  readonly href: (params: Record<string, string>) => string;
  readonly onClose: () => void;
}

export function HistorySheet(props: HistoryProps): JSX.Element | null {
  const { ruleId } = props;
  if (ruleId === null) return null;
  if (ruleId !== "all" && !isRuleId(ruleId)) return <NoSuchRule onClose={props.onClose} />;
  return (
    <Sheet
      key={ruleId}
      title={ruleId === "all" ? "History of all rules" : `History of rule ${ruleId}`}
      onClose={props.onClose}
    >
      {ruleId === "all" ? <History {...props} ruleId={ruleId} /> : <OfRule {...props} ruleId={ruleId} />}
    </Sheet>
  );
}

/** Versions of a rule, which can be restored, or the records of all acts on it, its overrides and its buckets. */
function OfRule(props: HistoryProps & { readonly ruleId: string }): JSX.Element {
  const [isOfActs, setOfActs] = useState(false);
  return (
    <div class="stack">
      <fieldset class="search-ranges" aria-label="Show">
        <button type="button" class="button" aria-pressed={!isOfActs} onClick={() => setOfActs(false)}>
          Versions
        </button>
        <button type="button" class="button" aria-pressed={isOfActs} onClick={() => setOfActs(true)}>
          All acts
        </button>
      </fieldset>
      {isOfActs ? (
        <EmbeddedHistory
          title="Acts on the rule, its overrides and its buckets"
          query={{ rule_id: props.ruleId }}
          changes={0}
          empty="No acts are recorded."
        />
      ) : (
        <History {...props} />
      )}
    </div>
  );
}

function History({ ruleId, isChangeable, href }: HistoryProps & { readonly ruleId: string }): JSX.Element {
  const first = useLoad((signal) => loadChanges(ruleId, undefined, signal), [ruleId]);
  const [older, setOlder] = useState<readonly ChangeList[]>([]);
  const [problem, setProblem] = useState<Problem>();
  const lists = first.value === undefined ? [] : [first.value, ...older];
  const next = lists.at(-1)?.next ?? null;
  const changes = lists.flatMap((list) => list.changes);
  const more = async () => {
    try {
      const list = await loadChanges(ruleId, next ?? undefined);
      setOlder((older) => [...older, list]);
      setProblem(undefined);
    } catch (thrown) {
      setProblem(asProblem(thrown));
    }
  };
  const failed = first.problem ?? problem;
  return (
    <div class="stack">
      {failed !== undefined && <Notice kind="error">{failed.detail}</Notice>}
      {first.value === undefined && first.problem === undefined && <p class="muted">Loading…</p>}
      {first.value !== undefined && changes.length === 0 && (
        <p class="muted">{isChangeable ? "No changes yet." : "No history: only rules in a database have one."}</p>
      )}
      <ol class="changes">
        {changes.map((change) => (
          <Change
            key={change.change_id}
            change={change}
            isOfAll={ruleId === "all"}
            isChangeable={isChangeable}
            href={href}
          />
        ))}
      </ol>
      {next !== null && (
        <div class="row">
          <button type="button" class="button" onClick={more}>
            Older changes
          </button>
        </div>
      )}
    </div>
  );
}

function loadChanges(ruleId: string, after: string | undefined, signal?: AbortSignal): Promise<ChangeList> {
  const path = ruleId === "all" ? "/v1/rules/changes" : `/v1/rules/${encodeURIComponent(ruleId)}/changes`;
  return call<ChangeList>("GET", path, {
    query: { limit: PAGE_CHANGES, after },
    ...(signal === undefined ? {} : { signal }),
  });
}

interface ChangeProps extends Pick<HistoryProps, "isChangeable" | "href"> {
  readonly change: RuleChange;
  readonly isOfAll: boolean;
}

function Change({ change, isOfAll, isChangeable, href }: ChangeProps): JSX.Element {
  // A complete rule, though the schema only says that it is an object.
  const old = change.old as Rule | null;
  const changed = change.new as Rule | null;
  const rule = changed ?? old;
  const id = String(change.rule_id);
  const restore = () => {
    if (old === null) return;
    if (changed === null) saveDraft(`new:${id}`, { form: { ...formOf(old), ruleId: id }, base: undefined });
    else saveDraft(id, { form: formOf(old), base: "current" });
    goTo(changed === null ? href({ rule: "new", from: id }) : href({ rule: id }));
  };
  return (
    <li class="change">
      <div class="change-head">
        <span>
          <strong>{old === null ? "Created" : changed === null ? "Deleted" : "Changed"}</strong>
          {isOfAll && (
            <>
              {": "}
              <a href={href({ history: id })}>rule {id}</a>
            </>
          )}{" "}
          by <bdi class="key">{visible(change.changed_by)}</bdi>
        </span>
        <time class="muted small" dateTime={change.changed_at}>
          {formatTime(change.changed_at)} UTC
        </time>
      </div>
      {rule !== null && (isOfAll || old === null || changed === null) && (
        <p class="small muted">
          <RuleSummary rule={rule} />: {quotaWords(rule)}
          {rule.plan !== null && (
            <>
              , for plan <bdi>{visible(rule.plan)}</bdi>
            </>
          )}
        </p>
      )}
      {old !== null && changed !== null && <ColumnChanges changes={changesOf(old, changed)} />}
      {isChangeable && old !== null && (
        <div class="row">
          <button type="button" class="button small" onClick={restore}>
            {changed === null ? "Restore rule" : "Restore previous version"}
          </button>
        </div>
      )}
    </li>
  );
}
