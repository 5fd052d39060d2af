/** Wide modal dialog; it fills the screen of a phone. */

import type { ComponentChildren, JSX } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { Notice } from "../ui/notice.tsx";
import "./sheet.css";

interface SheetProps {
  readonly title: ComponentChildren;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** Open as long as it is rendered. Returns the focus when it closes. */
export function Sheet({ title, onClose, children }: SheetProps): JSX.Element {
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
  // Closed and opened again within one rendering.
  useLayoutEffect(() => {
    if (dialog.current?.open === false) dialog.current.showModal();
  });
  return (
    <dialog ref={dialog} class="dialog sheet" aria-labelledby={heading}>
      <div class="dialog-head">
        <h2 id={heading} tabIndex={-1}>
          {title}
        </h2>
        <button type="button" class="button quiet" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
      {children}
    </dialog>
  );
}

/** Shown for an address with an invalid rule number. */
export function NoSuchRule({ onClose }: Pick<SheetProps, "onClose">): JSX.Element {
  return (
    <Sheet title="No such rule" onClose={onClose}>
      <Notice kind="error">The address contains no valid rule number.</Notice>
    </Sheet>
  );
}
