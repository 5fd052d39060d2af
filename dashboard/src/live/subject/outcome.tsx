/** Result of an action. Shown in the dialog, because toasts are behind it. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { asProblem } from "../../ui/load.ts";
import { type Kind, Notice } from "../../ui/notice.tsx";

export interface Outcome {
  readonly kind: Kind;
  readonly text: ComponentChildren;
  /** True to focus it: the button that had the focus is replaced by another. */
  readonly takesFocus?: boolean;
}

export function OutcomeNotice({ outcome }: { readonly outcome: Outcome | undefined }): JSX.Element | null {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (outcome?.takesFocus === true) element.current?.focus();
  }, [outcome]);
  if (outcome === undefined) return null;
  return (
    <div ref={element} tabIndex={-1}>
      <Notice kind={outcome.kind}>{outcome.text}</Notice>
    </div>
  );
}

/** The error message; 403 is explained. */
export function problemText(error: unknown): string {
  const { status, detail } = asProblem(error);
  return status === 403 ? `Nothing was changed: your token is read-only (${detail}).` : detail;
}
