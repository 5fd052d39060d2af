/** Rule editor. */

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Notice } from "../../ui/notice.tsx";
import { WhyField } from "../../ui/why-field.tsx";
import { TEXT_COLUMNS, titleOf } from "../columns.ts";
import type { FormError } from "../fields.ts";
import { Advanced, Labelled } from "./advanced.tsx";
import { Conflict } from "./conflict.tsx";
import { FormErrorText, inputProps } from "./form-error.tsx";
import { Meaning } from "./meaning.tsx";
import { RuleOverrides } from "./overrides.tsx";
import { Preview } from "./preview.tsx";
import { Sentence } from "./sentence.tsx";
import { type EditorInput, type EditorState, useEditor } from "./state.ts";
import "./editor.css";

interface EditorProps extends EditorInput {
  readonly plans: readonly string[];
  readonly names: readonly string[];
  readonly href: (params: Record<string, string>) => string;
}

export function Editor(props: EditorProps): JSX.Element {
  const state = useEditor(props);
  const element = useRef<HTMLFormElement>(null);
  // After a failed attempt to save, the focus goes to the error.
  useEffect(() => {
    if (state.refusals > 0) showWrong(element.current);
  }, [state.refusals]);
  if (state.versions !== undefined) {
    // Replaces the form: edits beside it would not be part of the selection.
    return (
      <Conflict
        key={state.versions.theirs.version}
        versions={state.versions}
        isBusy={state.isBusy}
        onSave={state.saveMerged}
        onTakeTheirs={state.takeTheirs}
        onGoOn={state.goOnEditing}
      />
    );
  }
  const submit = (event: Event) => {
    event.preventDefault();
    state.submit();
  };
  return (
    <form ref={element} class="rule-form" onSubmit={submit} noValidate>
      <Notices state={state} />
      <div class="editor-columns">
        <Columns {...props} state={state} />
        <div class="stack editor-side">
          <Preview check={state.check} ruleId={state.base?.rule_id ?? undefined} />
          {typeof state.base?.rule_id === "number" && <RuleOverrides ruleId={state.base.rule_id} />}
        </div>
      </div>
      <Foot state={state} href={props.href} />
    </form>
  );
}

/** Focuses the field with the error, and unfolds its section. */
function showWrong(form: HTMLFormElement | null): void {
  const wrong = form?.querySelector<HTMLElement>('[aria-invalid="true"]');
  wrong?.closest("details")?.setAttribute("open", "");
  wrong?.focus();
}

function Notices({ state }: { readonly state: EditorState }): JSX.Element {
  const { formError, problem, form } = state;
  return (
    <>
      {state.isGone && (
        <Notice kind="warning">
          <div class="row">
            <span>This rule was deleted meanwhile.</span>
            <button type="button" class="button small" onClick={state.makeAgain}>
              Create it again
            </button>
          </div>
        </Notice>
      )}
      {state.isFound && (
        <Notice kind="info">
          <div class="row">
            <span>Unsaved changes, from an earlier edit or from the history.</span>
            <button type="button" class="button small" onClick={state.startOver}>
              Start over
            </button>
          </div>
        </Notice>
      )}
      {form.ruleId !== "" && <p class="muted small">It will be restored as rule {form.ruleId}.</p>}
      {formError?.place === "top" && !state.isGone && (
        <Notice kind="error">
          {formError.text}
          {problem?.status === 403 && "; you can read and preview rules, but not save them"}
        </Notice>
      )}
    </>
  );
}

function Columns({ state, plans, names, href }: EditorProps & { readonly state: EditorState }): JSX.Element {
  const { form, set, formError, clash } = state;
  const open = clash !== undefined && (
    <>
      {" "}
      <a href={href({ rule: String(clash) })}>Open rule {clash}</a>
    </>
  );
  return (
    <div class="stack">
      <Sentence form={form} set={set} formError={formError} plans={plans} clash={open} />
      <Meaning form={form} />
      {TEXT_COLUMNS.map((column) => (
        <Labelled key={column} label={titleOf(column)} place={column} formError={formError}>
          {(id) => (
            <input
              id={id}
              class="input"
              value={form[column]}
              onInput={(event) => set({ [column]: event.currentTarget.value })}
              {...inputProps(column, formError)}
            />
          )}
        </Labelled>
      ))}
      <label class="check">
        <input
          type="checkbox"
          checked={form.isActive}
          onChange={(event) => set({ isActive: event.currentTarget.checked })}
        />
        Active
      </label>
      <FormErrorText at={["is_active"]} formError={formError} />
      <Advanced form={form} set={set} formError={formError} names={names} />
      <WhyField value={state.why} onValue={state.setWhy} />
    </div>
  );
}

function Foot({ state, href }: { readonly state: EditorState } & Pick<EditorProps, "href">): JSX.Element {
  const { base, isDirty, formError, check } = state;
  return (
    <div class="editor-foot">
      <span class="small muted editor-state">
        {stateWords(check.isCurrent, formError, isDirty || base === undefined)}
      </span>
      {base !== undefined && (
        <a class="button quiet" href={href({ history: String(base.rule_id) })}>
          History
        </a>
      )}
      {isDirty && (
        <button type="button" class="button" onClick={state.startOver}>
          Discard changes
        </button>
      )}
      <button type="submit" class="button primary" disabled={state.isBusy || (base !== undefined && !isDirty)}>
        {base === undefined ? "Create rule" : "Save"}
      </button>
    </div>
  );
}

function stateWords(isCurrent: boolean, formError: FormError | undefined, isDirty: boolean): string {
  if (formError !== undefined) {
    return formError.place === "top" ? "✕ Cannot be saved" : "✕ Correct the marked field";
  }
  if (!isCurrent) return "Checking…";
  return isDirty ? "✓ Valid" : "✓ No changes";
}
