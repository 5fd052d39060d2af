/** Which violations are a subject's own: those of its buckets. */

import type { Rule, Violation } from "../../api/types.ts";
import type { BucketState } from "./buckets.ts";

/** What the service, and the view of violations, are asked for. */
export type Search =
  | { readonly bucket_key: string }
  | { readonly user_id: string; readonly rule_id: number }
  | { readonly ip: string; readonly rule_id: number };

/**
 * One for the name of each bucket that is known, and none for the user or the address alone: those are of the first
 * request of a minute only, which in a bucket of many is anybody's.
 */
export function searchesOf(buckets: readonly BucketState[]): Search[] {
  const keys = new Set(buckets.flatMap(({ bucket }) => (bucket === undefined ? [] : [bucket.bucket_key])));
  return [...keys].map((bucket_key) => ({ bucket_key }));
}

/**
 * Finds those of a subject that is known only as the audit keeps it. All requests to a bucket of this rule have the
 * same attribute, so it is not only that of the first.
 */
export function recordedSearch(rule: Rule, attribute: string | undefined, subject: string): Search | undefined {
  const rule_id = rule.rule_id ?? 0;
  if (attribute === "user_id") return { user_id: subject, rule_id };
  return attribute === "ip" ? { ip: subject, rule_id } : undefined;
}

/** The last `max` of all these, the newest first. */
export function newest(lists: readonly (readonly Violation[])[], max: number): Violation[] {
  return lists
    .flat()
    .sort((a, b) => Date.parse(b.last_at) - Date.parse(a.last_at))
    .slice(0, max);
}
