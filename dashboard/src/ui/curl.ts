/** Requests as curl commands that are safe to paste into a shell, whatever text users put into them. */

/** Control and format characters, which a terminal could interpret. JSON and addresses can be written without them. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Braces and brackets in a path, which curl would expand to a list of addresses. */
const GLOB = /^[a-z]+:\/\/[^/]*.*[[\]{}]/;

/**
 * The curl command of a request. `url` is absolute; `body` is sent as JSON unless it is undefined. Headers must not
 * contain secrets.
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

/** Quotes a text as one word for a shell: only the quote itself is special between single quotes. */
export function quote(text: string): string {
  return /^[\w./:=@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** One escape for each UTF-16 code unit. */
function escapeInJson(unseen: string): string {
  return unseen
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");
}
