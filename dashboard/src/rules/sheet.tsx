/** A wide window over the page, for what needs room: all of the screen on a phone. */

import type { ComponentChildren, JSX } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { Notice } from "../ui/notice.tsx";
import "./sheet.css";

interface SheetProps {
  readonly title: ComponentChildren;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** It is open as long as it is rendered. The focus goes back to where it was. */
export function Sheet({ title, onClose, children }: SheetProps): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  const closed = useRef(onClose);
  closed.current = onClose;
  useLayoutEffect(() => {
    const element = dialog.current;
    const tell = () => closed.current();
    element?.addEventListener("close", tell);
    return () => {
      // Only closing gives the focus back. Its event comes late, and tells of nothing that is not known.
      element?.removeEventListener("close", tell);
      element?.close();
    };
  }, []);
  // Whoever closes it and asks for it again in the same moment has it again.
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

/** For an address that asks for a rule by something that is not a number. */
export function NoSuchRule({ onClose }: Pick<SheetProps, "onClose">): JSX.Element {
  return (
    <Sheet title="No such rule" onClose={onClose}>
      <Notice kind="error">What the address asks for is not the number of a rule.</Notice>
    </Sheet>
  );
}
