/** Search form of the history. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Problem } from "../api/client.ts";
import type { Rule } from "../api/types.ts";
import { hrefOf } from "../route.ts";
import { Field } from "../ui/field.tsx";
import { RangeButtons, RuleSelect, TimeField } from "../ui/search-parts.tsx";
import { TextField } from "../ui/text-field.tsx";
import { visible } from "../ui/visible.ts";
import { ACTS, actName } from "./acts.ts";
import { RANGES, type Search } from "./search.ts";

interface FormProps {
  /** The current search. */
  readonly search: Search;
  readonly rules: readonly Rule[];
  readonly problem: Problem | undefined;
  readonly onSearch: (search: Search) => void;
}

/** Its state starts from `search`: give it a key that changes with the search. */
export function SearchForm({ search, rules, problem, onSearch }: FormProps): JSX.Element {
  const [values, setValues] = useState(search);
  const set = (change: Partial<Search>) => setValues({ ...values, ...change });
  const submit = (event: Event) => {
    event.preventDefault();
    onSearch(values);
  };
  const errorOf = (name: string) =>
    problem?.field === name ? problem.detail.replace(new RegExp(`^${name}: `), "") : undefined;
  const text = (name: "who" | "subject" | "target", label: string, placeholder: string) => (
    <TextField
      label={label}
      placeholder={placeholder}
      value={values[name]}
      error={errorOf(name)}
      onValue={(value) => set({ [name]: value })}
    />
  );
  const time = (name: "from" | "to", label: string) => (
    <TimeField
      label={label}
      value={values[name]}
      error={errorOf(name)}
      onValue={(time) => set({ [name]: time, last: "" })}
    />
  );
  return (
    <search>
      <form class="panel" aria-label="Search" onSubmit={submit}>
        <div class="search-fields">
          <ActSelect value={values.act} error={errorOf("act")} onValue={(act) => set({ act })} />
          {text("who", "Who", "token:ops")}
          <RuleSelect
            rules={rules}
            value={values.rule_id}
            error={errorOf("rule_id")}
            onValue={(rule_id) => set({ rule_id })}
          />
          {text("subject", "Subject", "any")}
          {text("target", "Caller, token or key", "any")}
          {time("from", "From (UTC)")}
          {time("to", "To (UTC)")}
        </div>
        <div class="search-act">
          <RangeButtons ranges={RANGES} search={search} onTimes={(times) => onSearch({ ...values, ...times })} />
          <span class="row">
            <a class="button quiet" href={hrefOf("history")}>
              Clear
            </a>
            <button type="submit" class="button primary">
              Search
            </button>
          </span>
        </div>
      </form>
    </search>
  );
}

interface ActSelectProps {
  readonly value: string;
  readonly error: string | undefined;
  readonly onValue: (value: string) => void;
}

function ActSelect({ value, error, onValue }: ActSelectProps): JSX.Element {
  const isKnown = value === "" || actName(value) !== value;
  return (
    <Field label="Act" error={error}>
      {(input) => (
        <select {...input} class="input" value={value} onChange={(event) => onValue(event.currentTarget.value)}>
          <option value="">any</option>
          {!isKnown && <option value={value}>{visible(value)}</option>}
          {ACTS.map((act) => (
            <option key={act} value={act}>
              {actName(act)}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
