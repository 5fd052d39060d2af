/** Error at a field. There is one at a time: the service reports the first. */

import type { ComponentChildren, JSX } from "preact";
import { fieldMessage } from "../../ui/field-message.ts";
import type { FormError, Place } from "../fields.ts";

const ID = "rule-error";

/** Attributes that connect an input to its error. */
export function inputProps(place: Place, formError: FormError | undefined) {
  const isHere = formError?.place === place;
  return { "aria-invalid": isHere, "aria-describedby": isHere ? ID : undefined };
}

interface FormErrorProps {
  readonly at: readonly Place[];
  readonly formError: FormError | undefined;
  /** Shown after the error. */
  readonly children?: ComponentChildren;
}

/** The error, if it belongs to one of these places. */
export function FormErrorText({ at, formError, children }: FormErrorProps): JSX.Element | null {
  if (formError === undefined || !at.includes(formError.place)) return null;
  return (
    <p id={ID} class="rule-error" role="alert">
      <span aria-hidden="true">✕ </span>
      {fieldMessage(formError.text)}
      {children}
    </p>
  );
}
