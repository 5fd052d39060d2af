import { expect, test } from "@playwright/test";
import type { Bucket, Rule, Violation } from "../../src/api/types.ts";
import type { BucketState } from "../../src/live/subject/buckets.ts";
import { newest, recordedSearch, searchesOf } from "../../src/live/subject/violation-search.ts";

function buckets(bucket_key?: string): BucketState {
  return { bucket: bucket_key === undefined ? undefined : ({ bucket_key } as Bucket) } as BucketState;
}

function violation(violation_id: number, last_at: string): Violation {
  return { violation_id, last_at } as Violation;
}

test("known buckets are searched for, each once", () => {
  // Rules of several plans have the same bucket.
  expect(searchesOf([buckets("user:42"), buckets(), buckets("user:42"), buckets("api:42")])).toEqual([
    { bucket_key: "user:42" },
    { bucket_key: "api:42" },
  ]);
});

test("a pseudonym is searched for under its own rule only", () => {
  const rule = { rule_id: 5 } as Rule;
  expect(recordedSearch(rule, "ip", "203.0.113.0/24")).toEqual({ ip: "203.0.113.0/24", rule_id: 5 });
  expect(recordedSearch(rule, "user_id", "h:x")).toEqual({ user_id: "h:x", rule_id: 5 });
  expect(recordedSearch(rule, "tenant", "h:x")).toBeUndefined();
});

test("violations are sorted, newest first, and bounded", () => {
  const lists = [
    [violation(1, "2026-11-15T22:00:00.900000Z"), violation(2, "2026-11-15T21:00:00.000000Z")],
    [violation(3, "2026-11-15T22:30:00.000000Z")],
  ];
  expect(newest(lists, 2).map(({ violation_id }) => violation_id)).toEqual([3, 1]);
});
