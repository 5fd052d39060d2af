/** The main fields of a rule as a sentence: requests that match ..., counted per ..., may burst to ... */

import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";
import type { ModeName } from "../../api/types.ts";
import type { FormError, Place } from "../fields.ts";
import { isWindow, type PlanKind, type RuleForm } from "../form.ts";
import { GROUPS, type Group, groupOf, patternFor } from "../pattern.ts";
import { UNITS, type Unit, unitWord } from "../time.ts";
import { MODE_WORDS } from "../words.ts";
import { Conditions } from "./conditions.tsx";
import { FormErrorText, inputProps } from "./form-error.tsx";

export interface FormProps {
  readonly form: RuleForm;
  readonly set: (changed: Partial<RuleForm>) => void;
  readonly formError: FormError | undefined;
}

interface SentenceProps extends FormProps {
  readonly plans: readonly string[];
  /** Link to the conflicting rule, shown after the error. */
  readonly clash: ComponentChildren;
}

export function Sentence(props: SentenceProps): JSX.Element {
  const isUnlimited = props.form.mode === "unlimited";
  return (
    <div class="sentence">
      <Clause words="Requests that match" at={["conditions"]} formError={props.formError}>
        <Conditions {...props} />
      </Clause>
      <PlanClause {...props} />
      <Counting {...props} />
      {!isUnlimited && <QuotaClause {...props} />}
      <Clause words={isUnlimited ? "are" : "and are"} at={["mode"]} formError={props.formError}>
        <select
          class="input"
          aria-label="Mode"
          value={props.form.mode}
          onChange={(event) => props.set({ mode: event.currentTarget.value as ModeName })}
          {...inputProps("mode", props.formError)}
        >
          {Object.entries(MODE_WORDS).map(([mode, words]) => (
            <option key={mode} value={mode}>
              {words} ({mode})
            </option>
          ))}
        </select>
      </Clause>
    </div>
  );
}

interface ClauseProps {
  readonly words: string;
  /** Fields whose errors are shown below the clause. */
  readonly at: readonly Place[];
  readonly formError: FormError | undefined;
  readonly after?: ComponentChildren;
  readonly children: ComponentChildren;
}

function Clause({ words, at, formError, after, children }: ClauseProps): JSX.Element {
  const id = useId();
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out as part of a sentence.
    <div class="clause" role="group" aria-labelledby={id}>
      <span class="clause-words" id={id}>
        {words}
      </span>
      <div class="clause-body">
        <div class="clause-gaps">{children}</div>
        <FormErrorText at={at} formError={formError}>
          {after}
        </FormErrorText>
      </div>
    </div>
  );
}

const GROUP_WORDS: Record<Group, string> = {
  user: "user",
  ip: "IP address",
  endpoint: "endpoint",
  everyone: "all clients together",
  path: "all clients at one endpoint",
  own: "custom pattern",
};

function Counting({ form, set, formError, clash }: SentenceProps): JSX.Element {
  const group = groupOf(form.keyPattern);
  const choose = (chosen: Group) => set({ keyPattern: patternFor(chosen, form.keyPattern) });
  return (
    <Clause words="counted per" at={["key_pattern"]} formError={formError} after={clash}>
      <select
        class="input"
        aria-label="Counted per"
        value={group}
        onChange={(event) => choose(event.currentTarget.value as Group)}
      >
        {GROUPS.map((group) => (
          <option key={group} value={group}>
            {GROUP_WORDS[group]}
          </option>
        ))}
      </select>
      <span class="gap-words">with key</span>
      <input
        class="input mono pattern"
        aria-label="Key pattern"
        title="Text with {attribute} placeholders: each value has its own bucket"
        spellcheck={false}
        autocapitalize="off"
        value={form.keyPattern}
        onInput={(event) => set({ keyPattern: event.currentTarget.value })}
        {...inputProps("key_pattern", formError)}
      />
    </Clause>
  );
}

function QuotaClause(props: FormProps): JSX.Element {
  const { form, set, formError } = props;
  const rate = (
    <>
      <Count label="Tokens" place="tokens" value={form.tokens} onChange={(tokens) => set({ tokens })} {...props} />
      <span class="gap-words">per</span>
      <TimeInput
        label="Period"
        place="period"
        amount={form.period}
        unit={form.periodUnit}
        onChange={(period, periodUnit) => set({ period, periodUnit })}
        formError={formError}
      />
    </>
  );
  const burst = (
    <Count label="Burst" place="burst_capacity" value={form.burst} onChange={(burst) => set({ burst })} {...props} />
  );
  const at: Place[] = ["tokens", "period", "burst_capacity"];
  if (isWindow(form.algorithm)) {
    return (
      <Clause words="may send" at={at} formError={formError}>
        {rate}
      </Clause>
    );
  }
  if (form.algorithm === "leaky_bucket") {
    return (
      <Clause words="are served" at={at} formError={formError}>
        {rate}
        <span class="gap-words">with</span>
        {burst}
        <span class="gap-words">in the queue</span>
      </Clause>
    );
  }
  return (
    <Clause words="may burst to" at={at} formError={formError}>
      {burst}
      <span class="gap-words">refilling</span>
      {rate}
    </Clause>
  );
}

interface CountProps {
  readonly label: string;
  readonly place: Place;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly formError: FormError | undefined;
}

/** A whole number as text: the service validates it. */
function Count({ label, place, value, onChange, formError }: CountProps): JSX.Element {
  return (
    <input
      class="input count"
      aria-label={label}
      inputMode="numeric"
      value={value}
      onInput={(event) => onChange(event.currentTarget.value)}
      {...inputProps(place, formError)}
    />
  );
}

interface TimeProps {
  readonly label: string;
  readonly place: Place;
  readonly amount: string;
  readonly unit: Unit;
  readonly onChange: (amount: string, unit: Unit) => void;
  readonly formError: FormError | undefined;
}

/** Input of a duration: a number and a unit. */
export function TimeInput({ label, place, amount, unit, onChange, formError }: TimeProps): JSX.Element {
  return (
    <span class="time-input">
      <input
        class="input count"
        aria-label={label}
        inputMode="decimal"
        value={amount}
        onInput={(event) => onChange(event.currentTarget.value, unit)}
        {...inputProps(place, formError)}
      />
      <select
        class="input"
        aria-label={`${label}: unit`}
        value={unit}
        onChange={(event) => onChange(amount, event.currentTarget.value as Unit)}
      >
        {UNITS.map((unit) => (
          <option key={unit} value={unit}>
            {unitWord(unit, amount)}
          </option>
        ))}
      </select>
    </span>
  );
}

const PLAN_WORDS: Record<PlanKind, string> = {
  every: "every plan",
  named: "the plan named",
  default: "all other plans (default)",
};

function PlanClause({ form, set, formError, plans }: SentenceProps): JSX.Element {
  const list = useId();
  return (
    <Clause words="on" at={["plan"]} formError={formError}>
      <select
        class="input"
        aria-label="Plans"
        value={form.planKind}
        onChange={(event) => set({ planKind: event.currentTarget.value as PlanKind })}
        {...(form.planKind === "named" ? {} : inputProps("plan", formError))}
      >
        {Object.entries(PLAN_WORDS).map(([kind, words]) => (
          <option key={kind} value={kind}>
            {words}
          </option>
        ))}
      </select>
      {form.planKind === "named" && (
        <>
          <input
            class="input plan"
            aria-label="Plan"
            list={list}
            spellcheck={false}
            autocapitalize="off"
            value={form.plan}
            onInput={(event) => set({ plan: event.currentTarget.value })}
            {...inputProps("plan", formError)}
          />
          <datalist id={list}>
            {plans.map((plan) => (
              <option key={plan} value={plan} />
            ))}
          </datalist>
        </>
      )}
    </Clause>
  );
}
