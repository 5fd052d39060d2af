/** Parts of a search form: a rule, a time, and time ranges. */

import type { JSX } from "preact";
import type { Rule } from "../api/types.ts";
import { Field } from "./field.tsx";
import { inputOf, type SearchTexts, type TimeRange, timeOf } from "./search.ts";
import { visible } from "./visible.ts";

interface InputProps {
  readonly value: string;
  readonly error: string | undefined;
  readonly onValue: (value: string) => void;
}

export function RuleSelect({
  rules,
  value,
  error,
  onValue,
}: InputProps & { readonly rules: readonly Rule[] }): JSX.Element {
  return (
    <Field label="Rule" error={error}>
      {(input) => (
        <select {...input} class="input" value={value} onChange={(event) => onValue(event.currentTarget.value)}>
          <option value="">any</option>
          {value !== "" && !rules.some(({ rule_id }) => String(rule_id) === value) && (
            <option value={value}>{visible(value)}</option>
          )}
          {rules.map(({ rule_id, key_pattern, plan }) => (
            <option key={rule_id} value={String(rule_id)}>
              {rule_id}: {visible(key_pattern)}
              {plan !== null && ` (${visible(plan)})`}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** A moment in UTC; `value` is RFC 3339. */
export function TimeField({ label, value, error, onValue }: InputProps & { readonly label: string }): JSX.Element {
  return (
    <div class="search-wide">
      <Field label={label} error={error}>
        {(input) => (
          <input
            {...input}
            class="input"
            type="datetime-local"
            step={1}
            value={inputOf(value)}
            onInput={(event) => onValue(timeOf(event.currentTarget.value))}
          />
        )}
      </Field>
    </div>
  );
}

interface RangeButtonsProps {
  readonly ranges: readonly TimeRange[];
  /** The current search. */
  readonly search: SearchTexts<never>;
  readonly onTimes: (times: SearchTexts<never>) => void;
}

export function RangeButtons({ ranges, search, onTimes }: RangeButtonsProps): JSX.Element {
  return (
    <fieldset class="search-ranges" aria-label="Time range">
      {ranges.map(({ name, title }) => (
        <button
          key={name}
          type="button"
          class="button"
          aria-pressed={search.last === name}
          onClick={() => onTimes({ last: name, from: "", to: "" })}
        >
          {title}
        </button>
      ))}
      <button
        type="button"
        class="button"
        aria-pressed={search.last === "" && search.from === "" && search.to === ""}
        onClick={() => onTimes({ last: "", from: "", to: "" })}
      >
        All time
      </button>
    </fieldset>
  );
}
