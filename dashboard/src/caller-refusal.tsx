/** Notice that the service refuses the page's own checks, with a way to sign in. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { refusalText } from "./api/refusal.ts";
import { currentToken } from "./session.ts";
import { TokenForm } from "./sign-in.tsx";
import { Dialog } from "./ui/dialog.tsx";
import { Notice } from "./ui/notice.tsx";

interface CallerRefusalProps {
  /** 401 or 403. */
  readonly status: number;
}

export function CallerRefusal({ status }: CallerRefusalProps): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  return (
    <Notice kind="warning">
      <div class="row">
        <span>{refusalText(status, currentToken() !== "")}</span>
        <button type="button" class="button" onClick={() => setOpen(true)}>
          Sign in…
        </button>
      </div>
      {isOpen && (
        <Dialog title="Sign in" onClose={() => setOpen(false)}>
          <p class="muted">
            Use the token of the setting <code>admin.token</code>, or create one with{" "}
            <code>sluicegate tokens create NAME --role admin</code>. It is stored for this tab only.
          </p>
          <TokenForm onSignedIn={() => setOpen(false)} />
        </Dialog>
      )}
    </Notice>
  );
}
