/** Search form. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Problem } from "../api/client.ts";
import type { Rule } from "../api/types.ts";
import { hrefOf } from "../route.ts";
import { Field } from "../ui/field.tsx";
import { TextField } from "../ui/text-field.tsx";
import { visible } from "../ui/visible.ts";
import { inputOf, RANGES, type Search, timeOf } from "./search.ts";

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
    <div class="violations-wide">
      <Field label={label} error={errorOf(name)}>
        {(input) => (
          <input
            {...input}
            class="input"
            type="datetime-local"
            step={1}
            value={inputOf(values[name])}
            onInput={(event) => set({ [name]: timeOf(event.currentTarget.value), last: "" })}
          />
        )}
      </Field>
    </div>
  );
  return (
    <search>
      <form class="panel" aria-label="Search" onSubmit={submit}>
        <div class="violations-fields">
          {text("user_id", "User id", "any")}
          {text("ip", "IP address", "any")}
          {text("endpoint", "Endpoint", "any")}
          {text("bucket_key", "Bucket", "any")}
          <Field label="Rule" error={errorOf("rule_id")}>
            {(input) => (
              <select
                {...input}
                class="input"
                value={values.rule_id}
                onChange={(event) => set({ rule_id: event.currentTarget.value })}
              >
                <option value="">any</option>
                {values.rule_id !== "" && !rules.some(({ rule_id }) => String(rule_id) === values.rule_id) && (
                  <option value={values.rule_id}>{visible(values.rule_id)}</option>
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
        <div class="violations-act">
          <fieldset class="violations-ranges" aria-label="Time range">
            {RANGES.map(({ name, title }) => (
              <button
                key={name}
                type="button"
                class="button"
                aria-pressed={search.last === name}
                onClick={() => onSearch({ ...values, last: name, from: "", to: "" })}
              >
                {title}
              </button>
            ))}
            <button
              type="button"
              class="button"
              aria-pressed={search.last === "" && search.from === "" && search.to === ""}
              onClick={() => onSearch({ ...values, last: "", from: "", to: "" })}
            >
              All time
            </button>
          </fieldset>
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
