/** Form field: a label, an input, and a hint or an error. */

import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";
import { fieldMessage } from "./field-message.ts";

interface FieldProps {
  readonly label: ComponentChildren;
  readonly hint?: ComponentChildren;
  readonly error?: string | undefined;
  /** Renders the input with the attributes that connect it to its label. */
  readonly children: (input: InputProps) => ComponentChildren;
}

export interface InputProps {
  readonly id: string;
  readonly "aria-invalid": boolean;
  readonly "aria-describedby": string | undefined;
}

export function Field({ label, hint, error, children }: FieldProps): JSX.Element {
  const id = useId();
  const about = error !== undefined || hint !== undefined ? `${id}-about` : undefined;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, "aria-invalid": error !== undefined, "aria-describedby": about })}
      {about !== undefined && (
        <div id={about} class={error === undefined ? "muted small" : "error"}>
          {error === undefined ? hint : fieldMessage(error)}
        </div>
      )}
    </div>
  );
}
