/** Fields for the values of other placeholders of the key pattern. */

import type { JSX } from "preact";
import { Field } from "../../ui/field.tsx";
import { Key } from "../../ui/key.tsx";

interface PlaceholderFieldsProps {
  readonly names: readonly string[];
  readonly values: Readonly<Record<string, string>>;
  readonly onChange: (values: Readonly<Record<string, string>>) => void;
}

export function PlaceholderFields({ names, values, onChange }: PlaceholderFieldsProps): JSX.Element {
  return (
    <div class="further">
      <p class="muted small">
        This rule has a bucket for each value of these, too. An override applies to all of them.
      </p>
      {names.map((name) => (
        <Field key={name} label={<Key text={name} />}>
          {(input) => (
            <input
              {...input}
              class="input mono"
              value={Object.hasOwn(values, name) ? values[name] : ""}
              onInput={(event) => onChange({ ...values, [name]: event.currentTarget.value })}
            />
          )}
        </Field>
      ))}
    </div>
  );
}
