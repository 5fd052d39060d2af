/** Modal dialog: the browser keeps the focus in it, and Escape closes it. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";

interface DialogProps {
  readonly title: ComponentChildren;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** Open as long as it is rendered. Returns the focus when it closes. */
export function Dialog({ title, onClose, children }: DialogProps): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  const closed = useRef(onClose);
  closed.current = onClose;
  useLayoutEffect(() => {
    const element = dialog.current;
    const report = () => closed.current();
    element?.addEventListener("close", report);
    return () => {
      // Only closing returns the focus. Its event comes late and is not needed any more.
      element?.removeEventListener("close", report);
      element?.close();
    };
  }, []);
  // Later, so that a menu that opens it is closed and has returned the focus.
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby={heading}>
      <div class="dialog-head">
        <h2 id={heading}>{title}</h2>
        <button type="button" class="button quiet" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
      {children}
    </dialog>
  );
}
