/** What has to be known beside the subject, where a pattern has further placeholders. */

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
      <p class="muted small">This rule has a bucket for each of these, too. Overrides are for all of them together.</p>
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
