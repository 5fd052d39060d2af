/** Buckets of a subject. */

import { call, Problem } from "../../api/client.ts";
import type { Bucket, Rule } from "../../api/types.ts";
import { asProblem } from "../../ui/load.ts";
import { otherPlaceholders, subjectAttribute } from "../../ui/pattern.ts";

/** The most buckets loaded for one panel. */
export const BUCKETS_MAX = 12;

/** Address of a bucket. */
export interface Place {
  readonly rule: Rule;
  /** The values of other placeholders, by name. */
  readonly further: Readonly<Record<string, string>>;
  /** Placeholders without a known value: the bucket cannot be loaded without them. */
  readonly missing: readonly string[];
}

export interface BucketState extends Place {
  readonly bucket: Bucket | undefined;
  readonly problem: Problem | undefined;
}

/** The bucket of a rule, with the known values of other placeholders. */
export function placeOf(rule: Rule, known: Readonly<Record<string, string>>): Place {
  const names = otherPlaceholders(rule.key_pattern);
  // A placeholder may be called `constructor`, which every object inherits.
  const isKnown = (name: string) => Object.hasOwn(known, name) && known[name] !== "";
  return {
    rule,
    further: Object.fromEntries(names.filter(isKnown).map((name) => [name, known[name]!])),
    missing: names.filter((name) => !isKnown(name)),
  };
}

/**
 * The other active rules with buckets of the same subject attribute, in the order of their ids. A shared bucket has
 * none.
 */
export function othersOf(rule: Rule, rules: readonly Rule[]): Rule[] {
  const attribute = subjectAttribute(rule.key_pattern);
  if (attribute === undefined) return [];
  return rules.filter(
    (other) =>
      other.rule_id !== rule.rule_id &&
      other.is_active &&
      other.mode !== "unlimited" &&
      subjectAttribute(other.key_pattern) === attribute,
  );
}

/**
 * The path of a bucket; undefined for a subject that is empty or only dots, which browsers normalise away even if it is
 * percent-encoded.
 */
export function bucketPath(ruleId: number, subject: string): string | undefined {
  if (subject === "" || subject === "." || subject === "..") return undefined;
  return `/v1/buckets/${ruleId}/${encodeURIComponent(subject)}`;
}

/** The path of a bucket; throws a `Problem` if there is none. */
export function pathOrProblem(ruleId: number, subject: string): string {
  const path = bucketPath(ruleId, subject);
  if (path !== undefined) return path;
  throw new Problem(
    0,
    "a browser cannot request the bucket of this subject; use `sluicegate buckets` on the command line",
    undefined,
  );
}

/** Loads the buckets whose placeholders are all known, in parallel. Never throws: each has its own problem. */
export async function loadBuckets(
  places: readonly Place[],
  subject: string,
  signal: AbortSignal,
): Promise<BucketState[]> {
  return Promise.all(
    places.slice(0, BUCKETS_MAX).map(async (place) => {
      if (place.missing.length > 0) return { ...place, bucket: undefined, problem: undefined };
      try {
        const path = pathOrProblem(place.rule.rule_id ?? 0, subject);
        const bucket = await call<Bucket>("GET", path, { query: place.further, signal });
        return { ...place, bucket, problem: undefined };
      } catch (error) {
        return { ...place, bucket: undefined, problem: asProblem(error) };
      }
    }),
  );
}
