/** Subject of a violation. */

import type { Violation } from "../api/types.ts";
import { placeholders, subjectAttribute } from "../ui/pattern.ts";
import { isCut, isPseudonym } from "../ui/pseudonym.ts";

/**
 * The subject of the bucket: the value of `user_id` if the pattern has it, else of `ip`, else of its first placeholder;
 * without placeholders, the pattern. Undefined if the bucket's key does not determine it, or it was recorded as a
 * pseudonym.
 */
export function subjectOf(keyPattern: string, violation: Violation): string | undefined {
  const subject = recordedOf(keyPattern, violation);
  return subject === undefined || isPseudonym(subject, subjectAttribute(keyPattern)) ? undefined : subject;
}

function recordedOf(keyPattern: string, violation: Violation): string | undefined {
  const names = placeholders(keyPattern);
  if (names.length === 0) return keyPattern;
  if (names.includes("user_id")) return violation.user_id ?? undefined;
  if (names.includes("ip")) return violation.ip_address ?? undefined;
  const [before = "", after = "", ...rest] = keyPattern.split(`{${names[0]}}`);
  if (names.length > 1 || rest.length > 0) return undefined;
  const { bucket_key } = violation;
  if (isCut(bucket_key)) return undefined;
  const isFilled = bucket_key.length >= before.length + after.length;
  if (!isFilled || !bucket_key.startsWith(before) || !bucket_key.endsWith(after)) return undefined;
  return bucket_key.slice(before.length, bucket_key.length - after.length);
}
