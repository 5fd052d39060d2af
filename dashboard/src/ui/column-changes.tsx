/** Differences of two versions, column by column. */

import type { JSX } from "preact";

/** A column with both values as text; undefined where there is none. */
export interface ColumnChange {
  readonly title: string;
  readonly old: string | undefined;
  readonly new: string | undefined;
}

export function ColumnChanges({ changes }: { readonly changes: readonly ColumnChange[] }): JSX.Element {
  return (
    <dl class="column-changes">
      {changes.map(({ title, old, new: now }) => (
        <div key={title}>
          <dt>{title}</dt>
          <dd>
            {old !== undefined && <del class="key">{old}</del>}
            {old !== undefined && now !== undefined && <span aria-hidden="true"> → </span>}
            {now !== undefined && <ins class="key">{now}</ins>}
          </dd>
        </div>
      ))}
    </dl>
  );
}
