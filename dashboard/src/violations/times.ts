/** Short texts for the times of a violation. */

import type { Violation } from "../api/types.ts";
import { formatTime } from "../format.ts";

/** The times of the first and the last denial; the parts that both share are not repeated. */
export function timesOf({ requested_at, last_at }: Pick<Violation, "requested_at" | "last_at">): string {
  const first = formatTime(requested_at);
  const last = formatTime(last_at);
  const time = first.slice(11);
  if (first === last) return time;
  if (first.slice(0, 16) === last.slice(0, 16)) return `${time} – :${last.slice(17)}`;
  return first.slice(0, 10) === last.slice(0, 10) ? `${time} – ${last.slice(11)}` : `${time} – ${last}`;
}
