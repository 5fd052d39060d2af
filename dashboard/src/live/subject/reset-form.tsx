/** Asking before the bucket that everybody shares is filled. */

import type { JSX } from "preact";
import { useFocus } from "./focus.ts";

interface ResetFormProps {
  readonly ruleId: number;
  readonly onReset: () => void;
  readonly onClose: () => void;
}

export function ResetForm({ ruleId, onReset, onClose }: ResetFormProps): JSX.Element {
  // What changes nothing comes first: one Enter too many does no harm.
  const cancel = useFocus<HTMLButtonElement>();
  return (
    <div class="form">
      <p>At once, the bucket of rule {ruleId} will be full again for everybody, for all share it.</p>
      <div class="row">
        <button type="button" class="button danger" onClick={onReset}>
          Yes, reset it for everybody
        </button>
        <button type="button" class="button" ref={cancel} onClick={onClose}>
          Cancel
        </button>
      </div>
    </div>
  );
}
