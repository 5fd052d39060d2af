/** Confirmation before a rule is deleted. */

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
import { WhyField } from "../ui/why-field.tsx";
import { RuleSummary } from "./parts.tsx";
import { quotaWords } from "./words.ts";

/** The most overrides counted. */
const OVERRIDES_COUNTED = 1000;

interface DeleteProps {
  readonly rule: Rule;
  readonly onClose: () => void;
  readonly onDeleted: () => void;
}

export function DeleteRule({ rule, onClose, onDeleted }: DeleteProps): JSX.Element {
  const [problem, setProblem] = useState<Problem>();
  const [isBusy, setBusy] = useState(false);
  const [reason, setReason] = useState("");
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
      // Only the version that was shown.
      await call("DELETE", `/v1/rules/${rule.rule_id}`, { ifMatch: rule.version, reason });
      showToast(`Rule ${rule.rule_id} deleted. It can be restored from the history.`);
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
        <WhyField value={reason} onValue={setReason} />
        {problem !== undefined && (
          <Notice kind="error">
            {problem.detail}
            {problem.status === 412 && ". Close this dialog and check the rule again."}
          </Notice>
        )}
        <div class="row">
          <button type="button" class="button danger" onClick={remove} disabled={isBusy}>
            Delete rule
          </button>
          {/* The browser closes the dialog and returns the focus. */}
          <button type="button" class="button" onClick={(event) => event.currentTarget.closest("dialog")?.close()}>
            Cancel
          </button>
        </div>
      </div>
    </Dialog>
  );
}

function overrideWords(list: OverrideList | undefined, problem: Problem | undefined): string {
  if (problem !== undefined) return `Could not count its overrides: ${problem.detail}.`;
  if (list === undefined) return "Loading overrides…";
  const count = list.overrides.length;
  if (count === 0) return "It has no overrides.";
  const more = list.next === null ? "" : "more than ";
  return count === 1 && more === ""
    ? "Its override will be deleted, too, and cannot be restored."
    : `Its ${more}${formatCount(count)} overrides will be deleted, too, and cannot be restored.`;
}
