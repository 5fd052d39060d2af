/** A request as a command line that can be pasted into a shell, whatever others have put into it. */

/** What a terminal might obey, or what hides the order of a text: none of it is needed to write JSON or an address. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Braces and brackets in a path, which curl would take for a list of addresses. */
const GLOB = /^[a-z]+:\/\/[^/]*.*[[\]{}]/;

/**
 * The command that asks the same. `url` is a whole address, and `body`, if it is not undefined, is sent as JSON. Give it
 * no header that is a secret.
 */
export function curlOf(method: string, url: string, headers: Readonly<Record<string, string>>, body?: unknown): string {
  const words = ["curl", "-sS", "-i"];
  if (GLOB.test(url)) words.push("--globoff");
  words.push("-X", quote(method), quote(url.replace(UNSEEN, encodeURIComponent)));
  for (const [name, value] of Object.entries(headers))
    words.push("-H", quote(`${name}: ${value}`.replace(UNSEEN, " ")));
  // Not `-d`, which would read a file if the text began with `@`.
  if (body !== undefined) words.push("--data-raw", quote(JSON.stringify(body).replace(UNSEEN, escapeInJson)));
  return words.join(" ");
}

/** A text as one word of a shell: between single quotes everything stands for itself, but for the quote. */
export function quote(text: string): string {
  return /^[\w./:=@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Some are two units of UTF-16, and so are two escapes. */
function escapeInJson(unseen: string): string {
  return unseen
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");
}
