/** Button that copies a text. */

import type { ComponentChildren, JSX } from "preact";
import { showToast } from "./toasts.tsx";

interface CopyProps {
  /** Called when the button is pressed. */
  readonly text: () => string;
  readonly children: ComponentChildren;
}

export function Copy({ text, children }: CopyProps): JSX.Element {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text());
      showToast("Copied.");
    } catch {
      showToast("Could not copy: the browser denied access to the clipboard.", "error");
    }
  };
  return (
    <button type="button" class="button" onClick={copy}>
      {children}
    </button>
  );
}
