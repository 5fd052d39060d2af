/** What is looked for among the rules. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Field } from "../ui/field.tsx";
import { visible } from "../ui/visible.ts";
import { EVERY_PLAN, type Filter, SCOPES } from "./list.ts";

/** So long nothing may have been typed: browsers refuse to change the address all the time. */
const TYPING_MS = 200;

interface FiltersProps {
  readonly filter: Filter;
  readonly plans: readonly string[];
  readonly onChange: (filter: Filter) => void;
}

export function Filters({ filter, plans, onChange }: FiltersProps): JSX.Element {
  const { text, type, flush, settle } = useTyped(filter.text, (text) => onChange({ ...filter, text }));
  const choose = (chosen: Partial<Filter>) => {
    settle();
    onChange({ ...filter, text, ...chosen });
  };
  // One that no rule names any more is still what the address says.
  const isUnknown = filter.plan !== "" && filter.plan !== EVERY_PLAN && !plans.includes(filter.plan);
  return (
    <search class="rules-filters">
      <Field label="Find">
        {(input) => (
          <input
            {...input}
            class="input"
            type="search"
            placeholder="pattern, endpoint, description …"
            value={text}
            onInput={(event) => type(event.currentTarget.value)}
            onBlur={flush}
          />
        )}
      </Field>
      <Select label="Plan" value={filter.plan} onChange={(plan) => choose({ plan })}>
        <option value="">any</option>
        <option value={EVERY_PLAN}>for every plan</option>
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
      <Select label="Switched" value={filter.active} onChange={(active) => choose({ active })}>
        <option value="">on or off</option>
        <option value="on">on</option>
        <option value="off">off</option>
      </Select>
    </search>
  );
}

interface Typed {
  readonly text: string;
  readonly type: (text: string) => void;
  /** Tells at once what was not told yet. */
  readonly flush: () => void;
  /** Tells nothing more of what was typed so far. */
  readonly settle: () => void;
}

/** A text that is told once nothing more is typed. `known` is the one that was told last, or came from elsewhere. */
function useTyped(known: string, tell: (text: string) => void): Typed {
  const [text, setText] = useState(known);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const latest = useRef(tell);
  latest.current = tell;
  const settle = () => {
    clearTimeout(timer.current);
    timer.current = undefined;
  };
  useEffect(() => settle, []);
  useEffect(() => {
    if (timer.current === undefined) setText(known);
  }, [known]);
  const told = (text: string) => {
    settle();
    latest.current(text);
  };
  return {
    text,
    type: (text) => {
      setText(text);
      settle();
      timer.current = setTimeout(() => told(text), TYPING_MS);
    },
    flush: () => {
      if (timer.current !== undefined) told(text);
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
