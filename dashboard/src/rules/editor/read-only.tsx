/** Read-only view of a rule. */

import type { JSX } from "preact";
import type { Rule } from "../../api/types.ts";
import { Notice } from "../../ui/notice.tsx";
import { COLUMN_NAMES, showColumn, titleOf } from "../columns.ts";
import { formOf } from "../form.ts";
import { Meaning } from "./meaning.tsx";

interface ReadOnlyProps {
  readonly rule: Rule | undefined;
  readonly source: string;
}

export function ReadOnly({ rule, source }: ReadOnlyProps): JSX.Element {
  return (
    <div class="stack">
      <Notice kind="info">
        Rules come from <span class="key">{source}</span> and are read-only here.
      </Notice>
      {rule !== undefined && (
        <>
          <Meaning form={formOf(rule)} />
          <div class="table-wrap">
            <table class="table">
              <tbody>
                {COLUMN_NAMES.map((column) => (
                  <tr key={column}>
                    <th scope="row">{titleOf(column)}</th>
                    <td class="key">{showColumn(column, rule)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
    </div>
  );
}
