/** Text that others have chosen, so that what is in it can be seen. */

/**
 * What is not seen, or turns the order of what is: a text with it could look like another one. A single blank between
 * other characters is seen; at either end, doubled, or of another kind it is not.
 */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}|^ +| +$| {2,}/gu;

const SHORT: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** The same text, with what is not seen written out: a line feed as `\n`, others as `\u{202e}`. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (unseen) => [...unseen].map(written).join(""));
}

function written(unseen: string): string {
  return SHORT[unseen] ?? `\\u{${unseen.codePointAt(0)?.toString(16)}}`;
}

/** The same for a text of several lines, such as a description, whose ends stay what they are. */
export function visibleLines(text: string): string {
  return text.split("\n").map(visible).join("\n");
}
