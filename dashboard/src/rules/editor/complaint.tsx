/** What is wrong with a field, said at that field. There is one such thing at a time: the service names the first. */

import type { ComponentChildren, JSX } from "preact";
import { plainly } from "../../ui/plainly.ts";
import type { Complaint, Place } from "../fields.ts";

const ID = "rule-complaint";

/** What an input has to have, so that what is said belongs to it. */
export function inputProps(place: Place, complaint: Complaint | undefined) {
  const isHere = complaint?.place === place;
  return { "aria-invalid": isHere, "aria-describedby": isHere ? ID : undefined };
}

interface SaidProps {
  readonly at: readonly Place[];
  readonly complaint: Complaint | undefined;
  /** What else there is to say about it. */
  readonly children?: ComponentChildren;
}

/** What is said, if it is about one of these. */
export function Said({ at, complaint, children }: SaidProps): JSX.Element | null {
  if (complaint === undefined || !at.includes(complaint.place)) return null;
  return (
    <p id={ID} class="rule-error" role="alert">
      <span aria-hidden="true">✕ </span>
      {plainly(complaint.text)}
      {children}
    </p>
  );
}
