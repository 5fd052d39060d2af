/** Search form. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Problem } from "../api/client.ts";
import type { Rule } from "../api/types.ts";
import { hrefOf } from "../route.ts";
import { Field } from "../ui/field.tsx";
import { RangeButtons, RuleSelect, TimeField } from "../ui/search-parts.tsx";
import { TextField } from "../ui/text-field.tsx";
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
  const errorOf = (name: string) => {
    if (problem?.field !== name) return undefined;
    return problem.detail.replace(new RegExp(`^${name}: `), "");
  };
  const text = (name: "user_id" | "ip" | "bucket_key" | "endpoint", label: string, placeholder: string) => (
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
          {text("user_id", "User id", "any")}
          {text("ip", "IP address", "any")}
          {text("endpoint", "Endpoint", "any")}
          {text("bucket_key", "Bucket", "any")}
          <RuleSelect
            rules={rules}
            value={values.rule_id}
            error={errorOf("rule_id")}
            onValue={(rule_id) => set({ rule_id })}
          />
          <Field label="Mode" error={errorOf("mode")}>
            {(input) => (
              <select
                {...input}
                class="input"
                value={values.mode}
                onChange={(event) => set({ mode: event.currentTarget.value })}
              >
                <option value="">both</option>
                <option value="enforce">enforce: denied</option>
                <option value="shadow">shadow: would be denied</option>
              </select>
            )}
          </Field>
          {time("from", "From (UTC)")}
          {time("to", "To (UTC)")}
        </div>
        <div class="search-act">
          <RangeButtons ranges={RANGES} search={search} onTimes={(times) => onSearch({ ...values, ...times })} />
          <span class="row">
            <a class="button quiet" href={hrefOf("violations")}>
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
