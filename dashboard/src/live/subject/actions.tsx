/** Actions on a subject: reset, grant, override, block. */

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { call } from "../../api/client.ts";
import type { Bucket, Override, Rule } from "../../api/types.ts";
import { formatCount } from "../../format.ts";
import { subjectAttribute } from "../../ui/pattern.ts";
import { WhyField } from "../../ui/why-field.tsx";
import { pathOrProblem } from "./buckets.ts";
import { GrantForm } from "./grant-form.tsx";
import { type Outcome, OutcomeNotice, problemText } from "./outcome.tsx";
import { OverrideForm, type OverrideFormKind } from "./override-form.tsx";
import { Conflict, deleteOverride } from "./overrides.ts";
import { ResetForm } from "./reset-form.tsx";

interface ActionsProps {
  readonly rule: Rule;
  readonly subject: string;
  /** The values of other placeholders, which select the bucket. */
  readonly further: Readonly<Record<string, string>>;
  /** True if the values of all placeholders are known. */
  readonly isComplete: boolean;
  /** The subject's override of this rule. */
  readonly override: Override | undefined;
  /** Called after every action, to load the data again. */
  readonly onChanged: () => void;
}

type PanelTarget = "reset" | "grant" | OverrideFormKind;

export function Actions(props: ActionsProps): JSX.Element {
  const { rule, subject, further, isComplete, override, onChanged } = props;
  const [opened, setOpened] = useState<PanelTarget>();
  // The override of another user that the form starts from.
  const [loaded, setLoaded] = useState<Override>();
  const [outcome, setOutcome] = useState<Outcome>();
  // Of all actions but overrides, whose form has a reason of its own.
  const [why, setWhy] = useState("");
  const opener = useRef<HTMLButtonElement>(null);
  const ruleId = rule.rule_id ?? 0;
  const isShared = subjectAttribute(rule.key_pattern) === undefined;

  const open = (form: PanelTarget, button: HTMLButtonElement) => {
    opener.current = button;
    setOutcome(undefined);
    setLoaded(undefined);
    setOpened(opened === form ? undefined : form);
  };
  const close = () => {
    setOpened(undefined);
    setLoaded(undefined);
    opener.current?.focus();
  };
  const done = (outcome: Outcome) => {
    setOutcome(outcome);
    setWhy("");
    close();
    onChanged();
  };
  const run = async (act: () => Promise<Outcome>) => {
    setOpened(undefined);
    try {
      setOutcome(await act());
      setWhy("");
    } catch (error) {
      setOutcome(outcomeOf(error));
    }
    onChanged();
  };
  const reset = () => {
    if (isShared) opener.current?.focus();
    return run(async () => {
      const path = `${pathOrProblem(ruleId, subject)}/reset`;
      const { remaining, limit } = await call<Bucket>("POST", path, { query: further, reason: why });
      return {
        kind: "ok",
        text: `The bucket was reset: ${formatCount(remaining)} of ${formatCount(limit)} tokens.`,
      };
    });
  };
  const unblock = (blocked: Override) =>
    run(async () => {
      await deleteOverride(blocked, why);
      return { kind: "ok", text: `Unblocked: the quota of rule ${ruleId} applies again.`, takesFocus: true };
    });

  const formButton = (form: PanelTarget, text: string, isDanger = false) => (
    <button
      type="button"
      class={isDanger ? "button danger" : "button"}
      aria-expanded={opened === form}
      onClick={(event) => open(form, event.currentTarget)}
    >
      {text}
    </button>
  );
  // The first Escape closes only the form, not the dialog.
  const closeByKey = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || opened === undefined) return;
    event.preventDefault();
    close();
  };
  const load = (override: Override) => {
    setLoaded(override);
    setOpened(override.kind);
  };
  const form = {
    rule,
    subject,
    isShared,
    override: loaded ?? override,
    isLoaded: loaded !== undefined,
    onClose: close,
    onDone: done,
    onConflict: onChanged,
    onLoad: load,
  };
  return (
    <section class="actions" aria-label="Actions" onKeyDown={closeByKey}>
      <div class="row">
        {isShared ? (
          formButton("reset", "Reset…")
        ) : (
          <button type="button" class="button" disabled={!isComplete} onClick={reset} title="Fills the bucket">
            Reset
          </button>
        )}
        {isComplete && formButton("grant", "Grant…")}
        {formButton("quota", "Override…")}
        {formButton("unlimited", "Unlimited…")}
        {override?.kind === "blocked" ? (
          <button type="button" class="button" onClick={() => unblock(override)}>
            Unblock
          </button>
        ) : (
          formButton("blocked", "Block…", true)
        )}
      </div>
      {!isOverride(opened) && <WhyField value={why} onValue={setWhy} />}
      <OutcomeNotice outcome={outcome} />
      {opened === "grant" && (
        <GrantForm ruleId={ruleId} subject={subject} further={further} why={why} onClose={close} onDone={done} />
      )}
      {opened === "reset" && <ResetForm ruleId={ruleId} onReset={reset} onClose={close} />}
      {isOverride(opened) && <OverrideForm key={`${opened} ${loaded?.version}`} kind={opened} {...form} />}
    </section>
  );
}

function isOverride(opened: PanelTarget | undefined): opened is OverrideFormKind {
  return opened !== undefined && opened !== "grant" && opened !== "reset";
}

function outcomeOf(error: unknown): Outcome {
  if (error instanceof Conflict) {
    return {
      kind: "warning",
      text: "The override was changed meanwhile, so nothing was done. The current override is below.",
    };
  }
  return { kind: "error", text: problemText(error) };
}
