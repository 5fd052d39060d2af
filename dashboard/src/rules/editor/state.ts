/** What the editor knows: the rule as it was, as it is typed, and what the service says of it. */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Problem } from "../../api/client.ts";
import type { Rule } from "../../api/types.ts";
import { showToast } from "../../ui/toasts.tsx";
import type { Versions } from "../conflict.ts";
import { type Draft, draftOf, dropDraft, saveDraft } from "../drafts.ts";
import { type FormError, formErrorOf, localErrorOf } from "../fields.ts";
import { bodyOf, formOf, isSameForm, NEW_FORM, type RuleForm } from "../form.ts";
import { type CheckState, useCheck } from "./check.ts";
import { type SaveResult, save } from "./save.ts";

export interface EditorInput {
  /** The rule that is changed; none for a new one. */
  readonly rule: Rule | undefined;
  /** What a new one begins as. */
  readonly like: Rule | undefined;
  /** The number of either, as it was asked for. */
  readonly id: string | null;
  readonly onSaved: (rule: Rule, isNew: boolean) => void;
  readonly onClose: () => void;
}

export interface EditorState {
  /** The rule that is changed, in the version that the changes are to. */
  readonly base: Rule | undefined;
  readonly form: RuleForm;
  readonly set: (changed: Partial<RuleForm>) => void;
  readonly startOver: () => void;
  readonly isDirty: boolean;
  /** Whether this was typed before, and found again. */
  readonly isFound: boolean;
  readonly isBusy: boolean;
  /** Whether somebody has deleted the rule meanwhile. */
  readonly isGone: boolean;
  readonly makeAgain: () => void;
  readonly checked: CheckState;
  readonly problem: Problem | undefined;
  readonly formError: FormError | undefined;
  /** The rule that this one clashes with. */
  readonly clash: number | undefined;
  /** There if somebody else has saved first. */
  readonly versions: Versions | undefined;
  readonly submit: () => void;
  readonly saveMerged: (merged: Rule) => void;
  readonly takeTheirs: () => void;
  readonly goOnEditing: () => void;
  /** Counts the times that saving was refused. */
  readonly refusals: number;
}

export function useEditor(input: EditorInput): EditorState {
  const draftId = input.rule === undefined ? `new:${input.id ?? ""}` : String(input.rule.rule_id);
  const [draft] = useState(() => draftOf(draftId));
  const [base, setBase] = useState(() => baseOf(draft, input.rule));
  const start = useMemo(() => startOf(base ?? input.like), [base, input.like]);
  const [form, setForm] = useState(() => draft?.form ?? start);
  const [isFound, setFound] = useState(() => !isSameForm(form, start));
  const [answer, setAnswer] = useState<SaveResult>();
  const [isBusy, setBusy] = useState(false);
  const [refusals, setRefusals] = useState(0);
  const isDirty = !isSameForm(form, start);
  const isShown = useIsShown();
  useDraft(draftId, form, base, isDirty);

  const local = localErrorOf(form);
  const body = local === undefined ? JSON.stringify(bodyOf(form, base)) : undefined;
  const checked = useCheck(body, base?.rule_id ?? undefined);
  // What was said of something older is not said of this.
  const found = checked.isCurrent ? checked.problem : undefined;
  const problem = answer?.kind === "refused" ? answer.problem : found;

  const set = (changed: Partial<RuleForm>) => {
    setAnswer(undefined);
    setFound(false);
    setForm((form) => ({ ...form, ...changed }));
  };
  const store = async (form: RuleForm, base: Rule | undefined) => {
    setBusy(true);
    const answer = await save(form, base);
    if (answer.kind === "saved") {
      dropDraft(draftId);
      input.onSaved(answer.rule, base === undefined);
      if (isShown()) input.onClose();
      return;
    }
    // Whoever has closed the editor meanwhile should know; what was typed is kept.
    if (!isShown()) showToast("The rule was not saved. What you typed is still there.", "error");
    setBusy(false);
    setAnswer(answer);
    if (answer.kind === "refused") setRefusals((times) => times + 1);
  };
  const goOnFrom = (base: Rule | undefined, form: RuleForm) => {
    setBase(base);
    setForm(form);
    setAnswer(undefined);
  };
  const versions = answer?.kind === "conflict" ? answer.versions : undefined;
  return {
    base,
    form,
    set,
    startOver: () => {
      const latest = latestOf(base, input.rule);
      setBase(latest);
      set(startOf(latest ?? input.like));
    },
    isDirty,
    isFound: isFound && isDirty,
    isBusy,
    isGone: base !== undefined && (answer?.kind === "gone" || problem?.status === 404),
    makeAgain: () => goOnFrom(undefined, { ...form, ruleId: String(base?.rule_id ?? "") }),
    checked,
    problem,
    formError: local ?? (problem === undefined ? undefined : formErrorOf(problem, form)),
    clash: problem?.conflictingRuleId,
    versions,
    submit: () => {
      if (local === undefined) void store(form, base);
      else setRefusals((times) => times + 1);
    },
    saveMerged: (merged) => {
      goOnFrom(versions?.theirs, formOf(merged));
      void store(formOf(merged), versions?.theirs);
    },
    takeTheirs: () => {
      if (versions !== undefined) goOnFrom(versions.theirs, formOf(versions.theirs));
    },
    goOnEditing: () => setAnswer(undefined),
    refusals,
  };
}

/** What the changes are to: what they were to when they were typed, also if somebody has saved another version since. */
function baseOf(draft: Draft | undefined, rule: Rule | undefined): Rule | undefined {
  return draft === undefined || draft.base === "current" ? rule : draft.base;
}

/** The newer version of a rule. One that is to be made has none. */
function latestOf(base: Rule | undefined, loaded: Rule | undefined): Rule | undefined {
  return base !== undefined && loaded !== undefined && loaded.version > base.version ? loaded : base;
}

/** What the editor begins with, and what it goes back to. */
function startOf(rule: Rule | undefined): RuleForm {
  return rule === undefined ? NEW_FORM : formOf(rule);
}

/** Says whether the editor is still there. */
function useIsShown(): () => boolean {
  const shown = useRef(true);
  useEffect(() => {
    shown.current = true;
    return () => {
      shown.current = false;
    };
  }, []);
  return () => shown.current;
}

/** Keeps what is typed for as long as the page is there, and has the browser ask before that ends. */
function useDraft(id: string, form: RuleForm, base: Rule | undefined, isDirty: boolean): void {
  // At once: what is closed right after a key was pressed has that key, too.
  useLayoutEffect(() => {
    if (isDirty) saveDraft(id, { form, base });
    else dropDraft(id);
  }, [id, form, base, isDirty]);
  useEffect(() => {
    if (!isDirty) return undefined;
    const ask = (event: Event) => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [isDirty]);
}
