/** Filters of the list of rules. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Field } from "../ui/field.tsx";
import { visible } from "../ui/visible.ts";
import { EVERY_PLAN, type Filter, SCOPES } from "./list.ts";

/** Delay after the last keystroke: browsers limit how often the address may change. */
const TYPING_MS = 200;

interface FiltersProps {
  readonly filter: Filter;
  readonly plans: readonly string[];
  readonly onChange: (filter: Filter) => void;
}

export function Filters({ filter, plans, onChange }: FiltersProps): JSX.Element {
  const { text, type, flush, settle } = useDelayedText(filter.text, (text) => onChange({ ...filter, text }));
  const choose = (chosen: Partial<Filter>) => {
    settle();
    onChange({ ...filter, text, ...chosen });
  };
  // The address may have a plan that no rule names.
  const isUnknown = filter.plan !== "" && filter.plan !== EVERY_PLAN && !plans.includes(filter.plan);
  return (
    <search class="rules-filters">
      <Field label="Search">
        {(input) => (
          <input
            {...input}
            class="input"
            type="search"
            placeholder="pattern, endpoint, description"
            value={text}
            onInput={(event) => type(event.currentTarget.value)}
            onBlur={flush}
          />
        )}
      </Field>
      <Select label="Plan" value={filter.plan} onChange={(plan) => choose({ plan })}>
        <option value="">any</option>
        <option value={EVERY_PLAN}>rules for every plan</option>
        {[...plans, ...(isUnknown ? [filter.plan] : [])].map((plan) => (
          <option key={plan} value={plan}>
            {visible(plan)}
          </option>
        ))}
      </Select>
      <Select label="Scope" value={filter.scope} onChange={(scope) => choose({ scope })}>
        <option value="">any</option>
        {SCOPES.map((scope) => (
          <option key={scope} value={scope}>
            {scope}
          </option>
        ))}
      </Select>
      <Select label="Active" value={filter.active} onChange={(active) => choose({ active })}>
        <option value="">any</option>
        <option value="on">on</option>
        <option value="off">off</option>
      </Select>
    </search>
  );
}

interface DelayedText {
  readonly text: string;
  readonly type: (text: string) => void;
  /** Reports a pending change at once. */
  readonly flush: () => void;
  /** Drops a pending change. */
  readonly settle: () => void;
}

/** A text whose changes are reported after a delay. `known` is the last reported text, or a new one from outside. */
function useDelayedText(known: string, report: (text: string) => void): DelayedText {
  const [text, setText] = useState(known);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const latest = useRef(report);
  latest.current = report;
  const settle = () => {
    clearTimeout(timer.current);
    timer.current = undefined;
  };
  useEffect(() => settle, []);
  useEffect(() => {
    if (timer.current === undefined) setText(known);
  }, [known]);
  const reportNow = (text: string) => {
    settle();
    latest.current(text);
  };
  return {
    text,
    type: (text) => {
      setText(text);
      settle();
      timer.current = setTimeout(() => reportNow(text), TYPING_MS);
    },
    flush: () => {
      if (timer.current !== undefined) reportNow(text);
    },
    settle,
  };
}

interface SelectProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly children: JSX.Element | (JSX.Element | JSX.Element[])[];
}

function Select({ label, value, onChange, children }: SelectProps): JSX.Element {
  return (
    <Field label={label}>
      {(input) => (
        <select {...input} class="input" value={value} onChange={(event) => onChange(event.currentTarget.value)}>
          {children}
        </select>
      )}
    </Field>
  );
}
