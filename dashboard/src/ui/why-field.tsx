/** Form field for the reason of a change, which the history records. */

import type { JSX } from "preact";
import { Field } from "./field.tsx";

/** At most 900 bytes of UTF-8: the service accepts 1,024. */
const LENGTH_MAX = 300;

interface WhyFieldProps {
  readonly value: string;
  readonly onValue: (value: string) => void;
}

export function WhyField({ value, onValue }: WhyFieldProps): JSX.Element {
  return (
    <Field label="Why (optional)">
      {(input) => (
        <input
          {...input}
          class="input"
          autocomplete="off"
          maxLength={LENGTH_MAX}
          placeholder="Recorded in the history"
          value={value}
          onInput={(event) => onValue(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}
