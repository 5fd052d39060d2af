/** Searches for the violations of a subject's buckets. */

import type { Rule, Violation } from "../../api/types.ts";
import type { BucketState } from "./buckets.ts";

/** Parameters of the API and of the violations view. */
export type Search =
  | { readonly bucket_key: string }
  | { readonly user_id: string; readonly rule_id: number }
  | { readonly ip: string; readonly rule_id: number };

/**
 * One search for each known bucket, and none by user or address: violations record those only of the first request of a
 * minute, which in a shared bucket may come from any client.
 */
export function searchesOf(buckets: readonly BucketState[]): Search[] {
  const keys = new Set(buckets.flatMap(({ bucket }) => (bucket === undefined ? [] : [bucket.bucket_key])));
  return [...keys].map((bucket_key) => ({ bucket_key }));
}

/**
 * The search for a subject known only by its pseudonym. All requests to a bucket of this rule have the same attribute,
 * so the first request stands for all.
 */
export function recordedSearch(rule: Rule, attribute: string | undefined, subject: string): Search | undefined {
  const rule_id = rule.rule_id ?? 0;
  if (attribute === "user_id") return { user_id: subject, rule_id };
  return attribute === "ip" ? { ip: subject, rule_id } : undefined;
}

/** The newest `max` of all lists, newest first. */
export function newest(lists: readonly (readonly Violation[])[], max: number): Violation[] {
  return lists
    .flat()
    .sort((a, b) => Date.parse(b.last_at) - Date.parse(a.last_at))
    .slice(0, max);
}
