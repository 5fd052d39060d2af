/** Confirmation before a shared bucket is reset. */

import type { JSX } from "preact";
import { useFocus } from "./focus.ts";

interface ResetFormProps {
  readonly ruleId: number;
  readonly onReset: () => void;
  readonly onClose: () => void;
}

export function ResetForm({ ruleId, onReset, onClose }: ResetFormProps): JSX.Element {
  // Focused first, so that pressing Enter twice does not confirm.
  const cancel = useFocus<HTMLButtonElement>();
  return (
    <div class="form">
      <p>The shared bucket of rule {ruleId} will be full again for all clients, effective at once.</p>
      <div class="row">
        <button type="button" class="button danger" onClick={onReset}>
          Reset for all clients
        </button>
        <button type="button" class="button" ref={cancel} onClick={onClose}>
          Cancel
        </button>
      </div>
    </div>
  );
}
