/** What became of something that was done here. Toasts are below a dialog, and so cannot say it. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { asProblem } from "../../ui/load.ts";
import { type Kind, Notice } from "../../ui/notice.tsx";

export interface Outcome {
  readonly kind: Kind;
  readonly text: ComponentChildren;
  /** Whether the focus goes to it: where it was, another button is about to be. */
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

/** What the service refused, in its words, and what that means where it may not be plain. */
export function problemText(error: unknown): string {
  const { status, detail } = asProblem(error);
  return status === 403 ? `Nothing was changed. The token that you signed in with may only read: ${detail}.` : detail;
}
