/** A figure: as a number, and where it may be large, as a slider beside it. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Field } from "../ui/field.tsx";
import { nearestStop } from "./stops.ts";

interface FigureProps {
  readonly label: string;
  readonly value: number;
  readonly onValue: (value: number) => void;
  /** What the service says is wrong with it. */
  readonly error?: string | undefined;
  readonly hint?: ComponentChildren;
  /** Where the slider stops; without it there is none. */
  readonly stops?: readonly number[];
  /** What comes after the number. */
  readonly children?: ComponentChildren;
}

/** What is typed is passed on as soon as it is a number, whatever number: to judge it is up to the service. */
export function FigureInput({ label, value, onValue, error, hint, stops, children }: FigureProps): JSX.Element {
  const [text, setText] = useState(String(value));
  const isNumber = text.trim() !== "" && Number.isFinite(Number(text));
  useEffect(() => {
    if (Number(text) !== value) setText(String(value));
  }, [value]);
  const type = (next: string) => {
    setText(next);
    if (next.trim() !== "" && Number.isFinite(Number(next))) onValue(Number(next));
  };
  return (
    <Field label={label} error={isNumber ? error : "a number is needed here"} hint={hint}>
      {(input) => (
        <div class="pg-figure">
          {stops !== undefined && (
            <input
              type="range"
              aria-label={`${label}, as a slider`}
              min={0}
              max={stops.length - 1}
              value={nearestStop(stops, value)}
              aria-valuetext={String(value)}
              onInput={(event) => onValue(stops[Number(event.currentTarget.value)] ?? value)}
            />
          )}
          <input
            {...input}
            class="input pg-number"
            type="number"
            step="any"
            inputMode="decimal"
            value={text}
            onInput={(event) => type(event.currentTarget.value)}
          />
          {children}
        </div>
      )}
    </Field>
  );
}
