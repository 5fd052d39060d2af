/** Overrides of a subject. */

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { Problem } from "../../api/client.ts";
import type { Override } from "../../api/types.ts";
import { hrefOf } from "../../route.ts";
import { Key } from "../../ui/key.tsx";
import { Notice } from "../../ui/notice.tsx";
import { visible } from "../../ui/visible.ts";
import { WhyField } from "../../ui/why-field.tsx";
import { type Outcome, OutcomeNotice, problemText } from "./outcome.tsx";
import { Conflict, deleteOverride } from "./overrides.ts";
import { overrideText, untilText } from "./words.ts";

interface OverrideTableProps {
  /** Undefined until loaded. */
  readonly overrides: readonly Override[] | undefined;
  readonly problem: Problem | undefined;
  readonly onChanged: () => void;
}

export function OverrideTable({ overrides, problem, onChanged }: OverrideTableProps): JSX.Element {
  const heading = useRef<HTMLHeadingElement>(null);
  const [outcome, setOutcome] = useState<Outcome>();
  const remove = async (override: Override, why: string) => {
    setOutcome(await removed(override, why));
    // The row with the focused button is removed.
    heading.current?.focus();
    onChanged();
  };
  return (
    <section aria-labelledby="its-overrides-heading">
      <h3 id="its-overrides-heading" ref={heading} tabIndex={-1}>
        Overrides
      </h3>
      <OutcomeNotice outcome={outcome} />
      {problem !== undefined && <Notice kind="error">{problem.detail}</Notice>}
      {overrides?.length === 0 && <p class="muted">None: the quotas of the rules apply.</p>}
      {overrides !== undefined && overrides.length > 0 && (
        <ul class="overrides">
          {overrides.map((override) => (
            <Row key={override.override_id} override={override} onDelete={(why) => remove(override, why)} />
          ))}
        </ul>
      )}
    </section>
  );
}

async function removed(override: Override, why: string): Promise<Outcome> {
  try {
    await deleteOverride(override, why);
    return { kind: "ok", text: `Deleted: the quota of rule ${override.rule_id} applies again.` };
  } catch (error) {
    if (error instanceof Conflict) {
      return {
        kind: "warning",
        text: "The override was changed meanwhile and was not deleted. The current override is below.",
      };
    }
    return { kind: "error", text: problemText(error) };
  }
}

const KINDS = { quota: "", unlimited: "allowed", blocked: "denied" } as const;

interface RowProps {
  readonly override: Override;
  readonly onDelete: (why: string) => void;
}

function Row({ override, onDelete }: RowProps): JSX.Element {
  const [isAsking, setAsking] = useState(false);
  const [why, setWhy] = useState("");
  const { rule_id, kind, reason, expires_at, created_by } = override;
  return (
    <li class="override">
      <div>
        <span class={`badge ${KINDS[kind]}`}>{kind}</span> of{" "}
        <a href={hrefOf("rules", { rule: rule_id })}>rule {rule_id}</a>: {overrideText(override)}
        <div class="muted small">
          {untilText(expires_at)}, by <Key text={created_by} />
          {reason !== "" && (
            <>
              : <q class="reason">{visible(reason)}</q>
            </>
          )}
        </div>
      </div>
      {isAsking ? (
        <div class="row">
          <span class="small">The quota of the rule will apply at once.</span>
          <WhyField value={why} onValue={setWhy} />
          <button type="button" class="button danger" onClick={() => onDelete(why)}>
            Delete
          </button>
          <button type="button" class="button" onClick={() => setAsking(false)}>
            Cancel
          </button>
        </div>
      ) : (
        <button type="button" class="button" onClick={() => setAsking(true)}>
          Delete…
        </button>
      )}
    </li>
  );
}
