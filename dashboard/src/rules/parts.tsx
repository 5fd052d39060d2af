/** Components shared by the table, the editor and the history. */

import type { JSX } from "preact";
import type { ModeName, Rule } from "../api/types.ts";
import { visible } from "../ui/visible.ts";
import { type Part, plain, summaryParts } from "./words.ts";

/** A sentence with text chosen by users marked as keys. */
export function Words({ parts }: { readonly parts: readonly Part[] }): JSX.Element {
  return (
    <>
      {parts.map((part, index) =>
        part.isKey ? (
          <bdi key={index} class="key">
            {visible(part.text)}
          </bdi>
        ) : (
          part.text
        ),
      )}
    </>
  );
}

/** Grouping and conditions of a rule: `Each IP address, where endpoint is /login`. */
export function RuleSummary({ rule }: { readonly rule: Rule }): JSX.Element {
  return <Words parts={summaryParts(rule)} />;
}

/** Grouping and conditions of a rule as plain text. */
export function summaryText(rule: Rule): string {
  return visible(plain(summaryParts(rule)));
}

const SIGNS: Record<ModeName, string> = { enforce: "●", shadow: "◐", unlimited: "○" };
const CLASSES: Record<ModeName, string> = { enforce: "badge", shadow: "badge shadow", unlimited: "badge allowed" };

export function ModeBadge({ mode }: { readonly mode: ModeName }): JSX.Element {
  return (
    <span class={CLASSES[mode]}>
      <span aria-hidden="true">{SIGNS[mode]}</span> {mode}
    </span>
  );
}
