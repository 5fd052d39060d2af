/** What the audit keeps of a subject in its place. */

/** A hash, in the place of a text that nobody is to read. */
const HASHED = /^h:[\w-]{22}$/;
/** The network of an address that nobody is to read. */
const NETWORK = /^(?:\d{1,3}\.){3}0\/24$|^[\da-f:]*::\/48$/;
/** The end of a text that was cut: the hash of all of it. */
const CUT = /~[\w-]{22}$/;
/** No text that was cut has fewer bytes: 256 are kept, less what would be a part of a character. */
const CUT_BYTES_MIN = 253;

/**
 * Whether this is what the audit records of such an attribute where it hides or cuts it, and so the name of another
 * bucket than the one that was asked. The name of a bucket that everybody shares, which has no attribute, never is.
 */
export function isPseudonym(text: string, attribute: string | undefined): boolean {
  if (attribute === undefined) return false;
  return HASHED.test(text) || (attribute === "ip" && NETWORK.test(text)) || isCut(text);
}

/** Whether this is the beginning of a long text, and a hash of all of it. */
export function isCut(text: string): boolean {
  return CUT.test(text) && new TextEncoder().encode(text).length >= CUT_BYTES_MIN;
}
