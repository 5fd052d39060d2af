/** Advanced fields, folded unless one differs from its default. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import type { AlgorithmName, OnErrorName, PathFormName, RefillName, ScopeName } from "../../api/types.ts";
import { type FormError, isAdvanced, type Place } from "../fields.ts";
import { NEW_FORM, type RuleForm } from "../form.ts";
import { SCOPES } from "../list.ts";
import { suggestedScope } from "../pattern.ts";
import { FormErrorText, inputProps } from "./form-error.tsx";
import { type FormProps, TimeInput } from "./sentence.tsx";

const ALGORITHMS: Record<AlgorithmName, string> = {
  token_bucket: "token bucket: bursts, then steady",
  fixed_window: "fixed window: per clock period",
  sliding_window: "sliding window: in any period, exactly",
  sliding_counter: "sliding counter: in any period, approximately",
  leaky_bucket: "leaky bucket: steady, excess requests queue",
};

const REFILLS: Record<RefillName, string> = {
  continuous: "continuous: token by token",
  interval: "interval: all at the end of a period",
};

const ON_ERROR: Record<OnErrorName, string> = {
  local: "local: count in this process",
  allow: "allow everything",
  deny: "deny everything",
};

const PATHS: Record<PathFormName, string> = {
  exact: "exact: /login is not /login/",
  folded: "folded: /login, /login/, /LOGIN and /login;x are one path",
};

interface AdvancedProps extends FormProps {
  readonly names: readonly string[];
}

export function Advanced(props: AdvancedProps): JSX.Element {
  const { form, formError } = props;
  const [isOpen, setOpen] = useState(() => isUnusual(form));
  const isNeeded = formError !== undefined && isAdvanced(formError.place);
  // An error must be visible.
  useEffect(() => {
    if (isNeeded) setOpen(true);
  }, [isNeeded]);
  return (
    <details class="advanced" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Advanced: algorithm, store errors, paths, scope, names</summary>
      <div class="advanced-fields">
        <AlgorithmFields {...props} />
        <Choice
          label="On store errors"
          place="on_error"
          value={form.onError}
          options={ON_ERROR}
          onChange={(onError) => props.set({ onError })}
          formError={formError}
        />
        <Choice
          label="Paths"
          place="path"
          value={form.path}
          options={PATHS}
          onChange={(path) => props.set({ path })}
          formError={formError}
        />
        <ScopeChoice {...props} />
        <Names {...props} />
      </div>
    </details>
  );
}

/** Returns whether a field differs from its default. */
function isUnusual(form: RuleForm): boolean {
  const fields = ["algorithm", "refill", "maxWait", "onError", "path", "scope", "name", "replaces"] as const;
  return fields.some((field) => form[field] !== NEW_FORM[field]);
}

function AlgorithmFields({ form, set, formError }: FormProps): JSX.Element | null {
  if (form.mode === "unlimited") return null;
  return (
    <>
      <Choice
        label="Algorithm"
        place="algorithm"
        value={form.algorithm}
        options={ALGORITHMS}
        onChange={(algorithm) => set({ algorithm })}
        formError={formError}
      />
      {form.algorithm === "token_bucket" && (
        <Choice
          label="Refill"
          place="refill"
          value={form.refill}
          options={REFILLS}
          onChange={(refill) => set({ refill })}
          formError={formError}
        />
      )}
      {form.algorithm === "leaky_bucket" && (
        <Labelled label="Longest wait in the queue (empty: no limit)" place="max_wait" formError={formError}>
          {() => (
            <TimeInput
              label="Longest wait"
              place="max_wait"
              amount={form.maxWait}
              unit={form.maxWaitUnit}
              onChange={(maxWait, maxWaitUnit) => set({ maxWait, maxWaitUnit })}
              formError={formError}
            />
          )}
        </Labelled>
      )}
    </>
  );
}

function ScopeChoice({ form, set, formError }: FormProps): JSX.Element {
  const suggested = suggestedScope(form.keyPattern);
  const options = { "": `from the pattern (${suggested})`, ...Object.fromEntries(SCOPES.map((s) => [s, s])) };
  return (
    <Choice
      label="Scope"
      place="scope"
      value={form.scope}
      options={options as Record<ScopeName | "", string>}
      onChange={(scope) => set({ scope })}
      formError={formError}
    />
  );
}

function Names({ form, set, formError, names }: AdvancedProps): JSX.Element {
  const others = names.filter((name) => name !== form.name && !form.replaces.split("\n").includes(name));
  const add = (name: string) => set({ replaces: form.replaces === "" ? name : `${form.replaces}\n${name}` });
  return (
    <>
      <Labelled label="Name (for rules that replace it)" place="name" formError={formError}>
        {(id) => (
          <input
            id={id}
            class="input"
            value={form.name}
            onInput={(event) => set({ name: event.currentTarget.value })}
            {...inputProps("name", formError)}
          />
        )}
      </Labelled>
      <Labelled label="Replaces rules with these names (one per line)" place="replaces" formError={formError}>
        {(id) => (
          <>
            <textarea
              id={id}
              class="input"
              rows={2}
              value={form.replaces}
              onInput={(event) => set({ replaces: event.currentTarget.value })}
              {...inputProps("replaces", formError)}
            />
            {others.length > 0 && (
              <div class="row">
                {others.slice(0, SUGGESTED_MAX).map((name) => (
                  <button key={name} type="button" class="button small" onClick={() => add(name)}>
                    <span aria-hidden="true">+ </span>
                    <span class="visually-hidden">Replace </span>
                    <bdi>{name}</bdi>
                  </button>
                ))}
              </div>
            )}
          </>
        )}
      </Labelled>
    </>
  );
}

/** The most names suggested. */
const SUGGESTED_MAX = 8;

interface ChoiceProps<T extends string> {
  readonly label: string;
  readonly place: Place;
  readonly value: T;
  readonly options: Record<T, string>;
  readonly onChange: (value: T) => void;
  readonly formError: FormError | undefined;
}

function Choice<T extends string>(props: ChoiceProps<T>): JSX.Element {
  const { label, place, value, options, onChange, formError } = props;
  return (
    <Labelled label={label} place={place} formError={formError}>
      {(id) => (
        <select
          id={id}
          class="input"
          value={value}
          onChange={(event) => onChange(event.currentTarget.value as T)}
          {...inputProps(place, formError)}
        >
          {Object.entries<string>(options).map(([name, words]) => (
            <option key={name} value={name}>
              {words}
            </option>
          ))}
        </select>
      )}
    </Labelled>
  );
}

interface LabelledProps {
  readonly label: string;
  readonly place: Place;
  readonly formError: FormError | undefined;
  readonly children: (id: string) => ComponentChildren;
}

/** A label above its input, with the error below. */
export function Labelled({ label, place, formError, children }: LabelledProps): JSX.Element {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(id)}
      <FormErrorText at={[place]} formError={formError} />
    </div>
  );
}
