/** Why there is nothing to see. */

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
          ? "No violation matches this search. Take something away from it, or widen its time."
          : "No violations are on record. When a rule denies a request, it is here a second or two later."}
      </p>
      {unrecorded > 0 && (
        <Notice kind="warning">
          Rules denied {formatCount(unrecorded)} requests in the last minutes, and this process recorded none of them:
          the setting <code>audit.record</code> says which are recorded, and <code>none</code> switches that off.
        </Notice>
      )}
    </>
  );
}

/** Denials of the last minutes where nothing at all was noted since the start. */
function unrecordedOf({ rules, audit }: Stats): number {
  if (audit.noted > 0) return 0;
  return rules.reduce((sum, { denied, never }) => sum + denied + never, 0);
}
