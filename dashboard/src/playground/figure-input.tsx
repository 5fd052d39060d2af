/** Number input with an optional slider. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Field } from "../ui/field.tsx";
import { nearestStop } from "./stops.ts";

interface FigureProps {
  readonly label: string;
  readonly value: number;
  readonly onValue: (value: number) => void;
  /** The error of the service. */
  readonly error?: string | undefined;
  readonly hint?: ComponentChildren;
  /** Stops of the slider; without them there is no slider. */
  readonly stops?: readonly number[];
  /** Shown after the number. */
  readonly children?: ComponentChildren;
}

/** Reports every number that is typed; the service validates it. */
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
    <Field label={label} error={isNumber ? error : "is not a number"} hint={hint}>
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
