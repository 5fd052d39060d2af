/** What is wrong with a field, said at that field. There is one such thing at a time: the service names the first. */

import type { ComponentChildren, JSX } from "preact";
import { fieldMessage } from "../../ui/field-message.ts";
import type { FormError, Place } from "../fields.ts";

const ID = "rule-complaint";

/** What an input has to have, so that what is said belongs to it. */
export function inputProps(place: Place, formError: FormError | undefined) {
  const isHere = formError?.place === place;
  return { "aria-invalid": isHere, "aria-describedby": isHere ? ID : undefined };
}

interface FormErrorProps {
  readonly at: readonly Place[];
  readonly formError: FormError | undefined;
  /** What else there is to say about it. */
  readonly children?: ComponentChildren;
}

/** What is said, if it is about one of these. */
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
