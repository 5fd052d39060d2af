/** A button that copies a text. */

import type { ComponentChildren, JSX } from "preact";
import { showToast } from "./toasts.tsx";

interface CopyProps {
  /** Made when it is asked for. */
  readonly text: () => string;
  readonly children: ComponentChildren;
}

export function Copy({ text, children }: CopyProps): JSX.Element {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text());
      showToast("Copied.");
    } catch {
      showToast("This browser does not let the page copy.", "error");
    }
  };
  return (
    <button type="button" class="button" onClick={copy}>
      {children}
    </button>
  );
}
