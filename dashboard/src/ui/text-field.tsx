/** Form field for one line of text. */

import type { JSX } from "preact";
import { useId } from "preact/hooks";
import { Field } from "./field.tsx";

export interface TextProps {
  readonly placeholder?: string;
  readonly suggestions?: readonly string[];
  readonly inputMode?: "numeric";
}

interface TextFieldProps extends TextProps {
  readonly label: string;
  readonly value: string;
  readonly error: string | undefined;
  readonly onValue: (value: string) => void;
}

/** Keys and names are exact: spelling correction and capitalisation are off. */
export function TextField({
  label,
  value,
  error,
  onValue,
  placeholder,
  suggestions = [],
  inputMode,
}: TextFieldProps): JSX.Element {
  const list = useId();
  return (
    <Field label={label} error={error}>
      {(input) => (
        <>
          <input
            {...input}
            class="input mono"
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            inputMode={inputMode}
            placeholder={placeholder}
            list={suggestions.length > 0 ? list : undefined}
            value={value}
            onInput={(event) => onValue(event.currentTarget.value)}
          />
          {suggestions.length > 0 && <Suggestions id={list} texts={suggestions} />}
        </>
      )}
    </Field>
  );
}

/** Suggestions of an input. */
export function Suggestions({ id, texts }: { readonly id: string; readonly texts: readonly string[] }): JSX.Element {
  return (
    <datalist id={id}>
      {texts.map((text) => (
        <option key={text} value={text} />
      ))}
    </datalist>
  );
}
