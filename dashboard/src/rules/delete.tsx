/** Deleting a rule, once one has seen what goes with it. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call, type Problem } from "../api/client.ts";
import type { OverrideList, Rule } from "../api/types.ts";
import { formatCount } from "../format.ts";
import { Dialog } from "../ui/dialog.tsx";
import { asProblem, useLoad } from "../ui/load.ts";
import { Notice } from "../ui/notice.tsx";
import { showToast } from "../ui/toasts.tsx";
import { visible } from "../ui/visible.ts";
import { RuleSummary } from "./parts.tsx";
import { quotaWords } from "./words.ts";

/** As many are counted. */
const OVERRIDES_COUNTED = 1000;

interface DeleteProps {
  readonly rule: Rule;
  readonly onClose: () => void;
  readonly onDeleted: () => void;
}

export function DeleteRule({ rule, onClose, onDeleted }: DeleteProps): JSX.Element {
  const [problem, setProblem] = useState<Problem>();
  const [isBusy, setBusy] = useState(false);
  const overrides = useLoad(
    (signal) =>
      call<OverrideList>("GET", "/v1/overrides", {
        query: { rule_id: rule.rule_id ?? undefined, limit: OVERRIDES_COUNTED },
        signal,
      }),
    [rule.rule_id],
  );
  const remove = async () => {
    setBusy(true);
    try {
      // What was shown, and nothing newer.
      await call("DELETE", `/v1/rules/${rule.rule_id}`, { ifMatch: rule.version });
      showToast(`Rule ${rule.rule_id} is deleted. Its history can bring it back.`);
      onDeleted();
    } catch (thrown) {
      setProblem(asProblem(thrown));
      setBusy(false);
    }
  };
  return (
    <Dialog title={`Delete rule ${rule.rule_id}?`} onClose={onClose}>
      <div class="stack">
        <p>
          <RuleSummary rule={rule} />: {quotaWords(rule)}
          {rule.plan !== null && (
            <>
              , for plan <bdi class="key">{visible(rule.plan)}</bdi>
            </>
          )}
          .
        </p>
        <p aria-live="polite">{overrideWords(overrides.value, overrides.problem)}</p>
        {problem !== undefined && (
          <Notice kind="error">
            {problem.detail}
            {problem.status === 412 && ". Close this and look at it again."}
          </Notice>
        )}
        <div class="row">
          <button type="button" class="button danger" onClick={remove} disabled={isBusy}>
            Delete the rule
          </button>
          {/* Closed by the browser, which gives the focus back. */}
          <button type="button" class="button" onClick={(event) => event.currentTarget.closest("dialog")?.close()}>
            Keep it
          </button>
        </div>
      </div>
    </Dialog>
  );
}

function overrideWords(list: OverrideList | undefined, problem: Problem | undefined): string {
  if (problem !== undefined) return `How many overrides go with it cannot be said: ${problem.detail}.`;
  if (list === undefined) return "Counting its overrides …";
  const count = list.overrides.length;
  if (count === 0) return "It has no overrides.";
  const more = list.next === null ? "" : "more than ";
  return count === 1 && more === ""
    ? "One override goes with it, and does not come back."
    : `${more}${formatCount(count)} overrides go with it, and do not come back.`;
}
