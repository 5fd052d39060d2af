/** Pseudonyms: what the audit records in place of a subject. */

/** Hash of a hidden text. */
const HASHED = /^h:[\w-]{22}$/;
/** Network of a hidden address. */
const NETWORK = /^(?:\d{1,3}\.){3}0\/24$|^[\da-f:]*::\/48$/;
/** End of a truncated text: the hash of the whole. */
const CUT = /~[\w-]{22}$/;
/** The least bytes of a truncated text: 256 are kept, less an incomplete character. */
const CUT_BYTES_MIN = 253;

/**
 * Returns whether `text` is what the audit records of an attribute that it hides or truncates. It then names another
 * bucket than the one that was charged. A shared bucket has no attribute, and so never a pseudonym.
 */
export function isPseudonym(text: string, attribute: string | undefined): boolean {
  if (attribute === undefined) return false;
  return HASHED.test(text) || (attribute === "ip" && NETWORK.test(text)) || isCut(text);
}

/** Returns whether this is the beginning of a long text followed by its hash. */
export function isCut(text: string): boolean {
  return CUT.test(text) && new TextEncoder().encode(text).length >= CUT_BYTES_MIN;
}
