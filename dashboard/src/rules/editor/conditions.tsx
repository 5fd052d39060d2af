/** Conditions of a rule: attributes and globs. */

import type { JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import type { ConditionForm, RuleForm } from "../form.ts";
import { FormErrorText, inputProps } from "./form-error.tsx";
import type { FormProps } from "./sentence.tsx";

/** Suggested attributes. */
const ATTRIBUTES = ["endpoint", "method", "ip", "user_id", "plan"];
/** The most conditions of a rule. */
const CONDITIONS_MAX = 16;
/** Buttons that add a condition. */
const SHORTCUTS: readonly (readonly [string, ConditionForm])[] = [
  ["endpoint", { attribute: "endpoint", isNot: false, glob: "" }],
  ["method", { attribute: "method", isNot: false, glob: "" }],
  ["another attribute", { attribute: "", isNot: false, glob: "" }],
];

const EXAMPLES: Record<string, string> = { endpoint: "/api/**", method: "POST", ip: "10.20.*", user_id: "42" };

export function Conditions({ form, set, formError }: FormProps): JSX.Element {
  const list = useId();
  const rows = useRef<HTMLDivElement>(null);
  const isAdded = useRef(false);
  const count = form.conditions.length;
  // Focuses the condition that was added.
  useEffect(() => {
    if (!isAdded.current) return;
    isAdded.current = false;
    const added = rows.current?.querySelectorAll(".condition")[count - 1];
    [...(added?.querySelectorAll("input") ?? [])].find((input) => input.value === "")?.focus();
  }, [count]);
  const add = (condition: ConditionForm) => {
    isAdded.current = true;
    set({ conditions: [...form.conditions, condition] });
  };
  const change = (row: number, changed: Partial<ConditionForm>) =>
    set({ conditions: form.conditions.map((old, index) => (index === row ? { ...old, ...changed } : old)) });
  const remove = (row: number, button: HTMLElement) => {
    // The focused button is removed.
    button.closest(".clause-gaps")?.querySelector<HTMLElement>(".add")?.focus();
    set({ conditions: form.conditions.filter((_, index) => index !== row) });
  };
  return (
    <div class="conditions" ref={rows}>
      {count === 0 && <span class="gap-words">anything</span>}
      {form.conditions.map((condition, row) => (
        <div key={row} class="condition">
          <input
            class="input mono attribute"
            aria-label={`Attribute ${row + 1}`}
            list={list}
            placeholder="attribute"
            spellcheck={false}
            autocapitalize="off"
            value={condition.attribute}
            onInput={(event) => change(row, { attribute: event.currentTarget.value })}
            {...inputProps(`conditions.${row}`, formError)}
          />
          <select
            class="input"
            aria-label={`Operator ${row + 1}`}
            value={condition.isNot ? "not" : "is"}
            onChange={(event) => change(row, { isNot: event.currentTarget.value === "not" })}
          >
            <option value="is">is</option>
            <option value="not">is not</option>
          </select>
          <input
            class="input mono glob"
            aria-label={`Glob ${row + 1}`}
            placeholder={EXAMPLES[condition.attribute] ?? "glob"}
            title="* matches within a path segment, ** across segments. After a space, ! starts exceptions, separated by |"
            spellcheck={false}
            autocapitalize="off"
            value={condition.glob}
            onInput={(event) => change(row, { glob: event.currentTarget.value })}
            {...inputProps(`conditions.${row}`, formError)}
          />
          <button
            type="button"
            class="button quiet"
            aria-label={`Remove condition ${row + 1}`}
            onClick={(event) => remove(row, event.currentTarget)}
          >
            <span aria-hidden="true">✕</span>
          </button>
          <FormErrorText at={[`conditions.${row}`]} formError={formError} />
        </div>
      ))}
      {count < CONDITIONS_MAX && <Shortcuts form={form} add={add} />}
      <datalist id={list}>
        {ATTRIBUTES.map((attribute) => (
          <option key={attribute} value={attribute} />
        ))}
      </datalist>
    </div>
  );
}

interface ShortcutsProps {
  readonly form: RuleForm;
  readonly add: (condition: ConditionForm) => void;
}

function Shortcuts({ form, add }: ShortcutsProps): JSX.Element {
  return (
    <span class="shortcuts">
      {SHORTCUTS.filter(([, { attribute }]) => isFree(form, attribute)).map(([words, condition]) => (
        <button key={words} type="button" class="button small add" onClick={() => add(condition)}>
          <span aria-hidden="true">+ </span>
          <span class="visually-hidden">Add a condition on </span>
          {words}
        </button>
      ))}
    </span>
  );
}

/** Returns whether there is no condition on the attribute yet. */
function isFree(form: RuleForm, attribute: string): boolean {
  return !form.conditions.some((condition) => condition.attribute === attribute);
}
