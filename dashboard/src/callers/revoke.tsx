/** Confirmation before a caller is revoked. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Problem } from "../api/client.ts";
import type { Caller } from "../api/types.ts";
import { Dialog } from "../ui/dialog.tsx";
import { asProblem } from "../ui/load.ts";
import { Notice } from "../ui/notice.tsx";
import { WhyField } from "../ui/why-field.tsx";
import { revokeCaller } from "./api.ts";
import { lastUseText } from "./words.ts";

interface RevokeProps {
  readonly caller: Caller;
  /** True if there is no other caller. */
  readonly isLast: boolean;
  /** Clock of the service, in milliseconds. */
  readonly now: number;
  readonly onClose: () => void;
  readonly onRevoked: () => void;
}

export function RevokeCaller({ caller, isLast, now, onClose, onRevoked }: RevokeProps): JSX.Element {
  const [why, setWhy] = useState("");
  const [problem, setProblem] = useState<Problem>();
  const [isBusy, setBusy] = useState(false);
  const revoke = async () => {
    setBusy(true);
    try {
      await revokeCaller(caller.name, why);
      onRevoked();
    } catch (thrown) {
      setProblem(asProblem(thrown));
      setBusy(false);
    }
  };
  return (
    <Dialog title={`Revoke ${caller.name}?`} onClose={onClose}>
      <div class="caller-form">
        <p>
          All its requests will be refused: by this process at once, by others within two seconds. A new caller gets a
          new token; this one does not come back. Last use: {lastUseText(caller.last_used_at, now)}.
        </p>
        {isLast && (
          <Notice kind="warning">
            It is the last caller. Listeners on this machine then answer requests without a caller again, with all
            rights but refunds.
          </Notice>
        )}
        <WhyField value={why} onValue={setWhy} />
        {problem !== undefined && <Notice kind="error">{problem.detail}</Notice>}
        <div class="row">
          <button type="button" class="button danger" onClick={revoke} disabled={isBusy}>
            Revoke caller
          </button>
          <button type="button" class="button" onClick={(event) => event.currentTarget.closest("dialog")?.close()}>
            Cancel
          </button>
        </div>
      </div>
    </Dialog>
  );
}
