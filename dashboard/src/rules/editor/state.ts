/** State of the editor: base version, form, validation and result of saving. */

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
  /** The rule that is edited; undefined for a new one. */
  readonly rule: Rule | undefined;
  /** The rule that a new one copies. */
  readonly like: Rule | undefined;
  /** The number of either, from the address. */
  readonly id: string | null;
  readonly onSaved: (rule: Rule, isNew: boolean) => void;
  readonly onClose: () => void;
}

export interface EditorState {
  /** The version of the rule that is edited. */
  readonly base: Rule | undefined;
  readonly form: RuleForm;
  readonly set: (changed: Partial<RuleForm>) => void;
  /** Reason for the change. */
  readonly why: string;
  readonly setWhy: (why: string) => void;
  readonly startOver: () => void;
  readonly isDirty: boolean;
  /** True if the form was restored from a draft. */
  readonly isFound: boolean;
  readonly isBusy: boolean;
  /** True if the rule was deleted meanwhile. */
  readonly isGone: boolean;
  readonly makeAgain: () => void;
  readonly check: CheckState;
  readonly problem: Problem | undefined;
  readonly formError: FormError | undefined;
  /** The rule with the same key pattern and plan, if the service reported one. */
  readonly clash: number | undefined;
  /** Set if the rule was changed meanwhile. */
  readonly versions: Versions | undefined;
  readonly submit: () => void;
  readonly saveMerged: (merged: Rule) => void;
  readonly takeTheirs: () => void;
  readonly goOnEditing: () => void;
  /** Number of failed attempts to save. */
  readonly refusals: number;
}

export function useEditor(input: EditorInput): EditorState {
  const draftId = input.rule === undefined ? `new:${input.id ?? ""}` : String(input.rule.rule_id);
  const [draft] = useState(() => draftOf(draftId));
  const [base, setBase] = useState(() => baseOf(draft, input.rule));
  const start = useMemo(() => startOf(base ?? input.like), [base, input.like]);
  const [form, setForm] = useState(() => draft?.form ?? start);
  const [isFound, setFound] = useState(() => !isSameForm(form, start));
  const [why, setWhy] = useState("");
  const [answer, setAnswer] = useState<SaveResult>();
  const [isBusy, setBusy] = useState(false);
  const [refusals, setRefusals] = useState(0);
  const isDirty = !isSameForm(form, start);
  const isShown = useIsShown();
  useDraft(draftId, form, base, isDirty);

  const local = localErrorOf(form);
  const body = local === undefined ? JSON.stringify(bodyOf(form, base)) : undefined;
  const check = useCheck(body, base?.rule_id ?? undefined);
  // A result of an older form does not apply.
  const found = check.isCurrent ? check.problem : undefined;
  const problem = answer?.kind === "refused" ? answer.problem : found;

  const set = (changed: Partial<RuleForm>) => {
    setAnswer(undefined);
    setFound(false);
    setForm((form) => ({ ...form, ...changed }));
  };
  const store = async (form: RuleForm, base: Rule | undefined) => {
    setBusy(true);
    const answer = await save(form, base, why);
    if (answer.kind === "saved") {
      dropDraft(draftId);
      input.onSaved(answer.rule, base === undefined);
      if (isShown()) input.onClose();
      return;
    }
    // The editor may have been closed meanwhile; the draft is kept.
    if (!isShown()) showToast("The rule was not saved. Open it again: your changes are kept.", "error");
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
    why,
    setWhy,
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
    check,
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

/** The version that is edited: that of the draft, even if a newer one was saved since. */
function baseOf(draft: Draft | undefined, rule: Rule | undefined): Rule | undefined {
  return draft === undefined || draft.base === "current" ? rule : draft.base;
}

/** The newer version of a rule; undefined for a new one. */
function latestOf(base: Rule | undefined, loaded: Rule | undefined): Rule | undefined {
  return base !== undefined && loaded !== undefined && loaded.version > base.version ? loaded : base;
}

/** The initial form. */
function startOf(rule: Rule | undefined): RuleForm {
  return rule === undefined ? NEW_FORM : formOf(rule);
}

/** Returns a function that tells whether the editor is still mounted. */
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

/** Saves the draft, and makes the browser ask before the page is closed with unsaved changes. */
function useDraft(id: string, form: RuleForm, base: Rule | undefined, isDirty: boolean): void {
  // A layout effect, so that the last keystroke before closing is included.
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
