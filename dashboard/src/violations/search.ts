/** Search for violations. */

import type { Query } from "../ui/export-pages.ts";
import { type SearchTexts, searchKind, type TimeRange } from "../ui/search.ts";

const FIELDS = ["user_id", "ip", "bucket_key", "endpoint", "rule_id", "mode"] as const;

export type Search = SearchTexts<(typeof FIELDS)[number]>;

export const RANGES: readonly TimeRange[] = [
  { name: "15m", title: "Last 15 min", seconds: 900 },
  { name: "1h", title: "Last hour", seconds: 3600 },
  { name: "1d", title: "Last day", seconds: 86_400 },
];

export const { searchOf, paramsOf, queryOf } = searchKind(FIELDS, RANGES);

/** The parameters that the list of top offenders supports. */
export function topQueryOf({ rule_id, mode, from, to }: Query): Query {
  const pairs = Object.entries({ rule_id, mode, from, to });
  return Object.fromEntries(pairs.filter((pair): pair is [string, string] => pair[1] !== undefined));
}
