/** A text that others have chosen: a key, a subject, an endpoint. */

import type { JSX } from "preact";
import { visible } from "./visible.ts";

interface KeyProps {
  readonly text: string;
  /** An address of this page. */
  readonly href?: string | undefined;
  /** Whether to show no more than a few lines of it, and all of it where it is pointed at. */
  readonly isClamped?: boolean;
}

/** It is never without a name: what is empty says so, and does not look like a key that says so. */
export function Key({ text, href, isClamped = false }: KeyProps): JSX.Element {
  const shown = text === "" ? "(empty)" : visible(text);
  const children = text === "" ? <i class="muted">{shown}</i> : shown;
  const props = isClamped ? { class: "key clamped", title: shown } : { class: "key" };
  if (href === undefined) return <span {...props}>{children}</span>;
  return (
    <a {...props} href={href}>
      {children}
    </a>
  );
}

/** The plan that a rule is for. */
export function PlanBadge({ plan }: { readonly plan: string }): JSX.Element {
  return <span class="badge key">{visible(plan)}</span>;
}
