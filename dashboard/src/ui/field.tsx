/** A label, what it is for, and what the service says is wrong with it. */

import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";
import { fieldMessage } from "./field-message.ts";

interface FieldProps {
  readonly label: ComponentChildren;
  readonly hint?: ComponentChildren;
  readonly error?: string | undefined;
  /** Gets what the input has to have, so that it belongs to the label. */
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
