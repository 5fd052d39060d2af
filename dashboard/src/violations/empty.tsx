/** Empty state, with the likely reason. */

import type { JSX } from "preact";
import { call } from "../api/client.ts";
import type { Stats } from "../api/types.ts";
import { formatCount } from "../format.ts";
import { useLoad } from "../ui/load.ts";
import { Notice } from "../ui/notice.tsx";

export function Empty({ isNarrow }: { readonly isNarrow: boolean }): JSX.Element {
  const stats = useLoad((signal) => call<Stats>("GET", "/v1/stats", { signal }), []);
  const unrecorded = stats.value === undefined ? 0 : unrecordedOf(stats.value);
  return (
    <>
      <p>
        {isNarrow
          ? "No violations match. Remove a filter or extend the time range."
          : "No violations yet. A denied request appears here after a second or two."}
      </p>
      {unrecorded > 0 && (
        <Notice kind="warning">
          Rules denied {formatCount(unrecorded)} requests in the last minutes, but this process recorded none of them.
          Check the setting <code>audit.record</code>: <code>none</code> turns recording off.
        </Notice>
      )}
    </>
  );
}

/** Denials of the last minutes, if the audit recorded nothing since the start. */
function unrecordedOf({ rules, audit }: Stats): number {
  if (audit.noted > 0) return 0;
  return rules.reduce((sum, { denied, never }) => sum + denied + never, 0);
}
