/** Search in the history. */

import { type SearchTexts, searchKind, type TimeRange } from "../ui/search.ts";

const FIELDS = ["act", "who", "rule_id", "subject", "target"] as const;

export type Search = SearchTexts<(typeof FIELDS)[number]>;

export const RANGES: readonly TimeRange[] = [
  { name: "1h", title: "Last hour", seconds: 3600 },
  { name: "1d", title: "Last day", seconds: 86_400 },
  { name: "7d", title: "Last 7 days", seconds: 604_800 },
];

export const { searchOf, paramsOf, queryOf } = searchKind(FIELDS, RANGES);
