/** Text chosen by users: a key, a subject, an endpoint. */

import type { JSX } from "preact";
import { visible } from "./visible.ts";

interface KeyProps {
  readonly text: string;
  /** An address of this page. */
  readonly href?: string | undefined;
  /** True to truncate it to a few lines; the tooltip has all of it. */
  readonly isClamped?: boolean;
}

/** Shows an empty text as "(empty)", in italics to differ from that text. */
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

/** Badge with the plan of a rule. */
export function PlanBadge({ plan }: { readonly plan: string }): JSX.Element {
  return <span class="badge key">{visible(plan)}</span>;
}
