/** Display of text chosen by users, with invisible characters escaped. */

/**
 * Invisible characters and those that change the text direction: a text with them could look like another one. A space
 * is visible between other characters, but not at either end, repeated, or of another kind.
 */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}|^ +| +$| {2,}/gu;

const SHORT: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** Escapes invisible characters: a line feed as `\n`, others as `\u{202e}`. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (unseen) => [...unseen].map(written).join(""));
}

function written(unseen: string): string {
  return SHORT[unseen] ?? `\\u{${unseen.codePointAt(0)?.toString(16)}}`;
}

/** Escapes invisible characters in a text of several lines, such as a description, and keeps its line breaks. */
export function visibleLines(text: string): string {
  return text.split("\n").map(visible).join("\n");
}
