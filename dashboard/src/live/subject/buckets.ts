/** Which buckets a subject has, and how they are asked for. */

import { call, Problem } from "../../api/client.ts";
import type { Bucket, Rule } from "../../api/types.ts";
import { asProblem } from "../../ui/load.ts";
import { otherPlaceholders, subjectAttribute } from "../../ui/pattern.ts";

/** The most buckets that are looked into for one panel. */
export const BUCKETS_MAX = 12;

/** A bucket that may be looked into. */
export interface Place {
  readonly rule: Rule;
  /** The values of further placeholders, by their names. */
  readonly further: Readonly<Record<string, string>>;
  /** The names of those that are not known: without them there is no bucket to look into. */
  readonly missing: readonly string[];
}

export interface BucketState extends Place {
  readonly bucket: Bucket | undefined;
  readonly problem: Problem | undefined;
}

/** The bucket of this rule, with what is known of further attributes. */
export function placeOf(rule: Rule, known: Readonly<Record<string, string>>): Place {
  const names = otherPlaceholders(rule.key_pattern);
  // A placeholder may be called `constructor`, which every object has.
  const isKnown = (name: string) => Object.hasOwn(known, name) && known[name] !== "";
  return {
    rule,
    further: Object.fromEntries(names.filter(isKnown).map((name) => [name, known[name]!])),
    missing: names.filter((name) => !isKnown(name)),
  };
}

/**
 * The other rules about the same attribute that are switched on and have buckets, in the order of their ids. There are
 * none beside a bucket that everybody shares.
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
 * The path of a bucket. A browser takes a part of a path that is empty or only dots for a way and not for a name,
 * however it is written: such a subject has none.
 */
export function bucketPath(ruleId: number, subject: string): string | undefined {
  if (subject === "" || subject === "." || subject === "..") return undefined;
  return `/v1/buckets/${ruleId}/${encodeURIComponent(subject)}`;
}

/** The same, or a `Problem` that says why not. */
export function pathOrProblem(ruleId: number, subject: string): string {
  const path = bucketPath(ruleId, subject);
  if (path !== undefined) return path;
  throw new Problem(
    0,
    "a browser cannot ask for this subject: use `sluicegate buckets` on the command line",
    undefined,
  );
}

/** Looks into the buckets whose placeholders are all known, all at once. Never throws: each has its own problem. */
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
