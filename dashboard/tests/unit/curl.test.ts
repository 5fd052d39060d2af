import { execFileSync } from "node:child_process";
import { expect, test } from "@playwright/test";
import { curlOf, quote } from "../../src/ui/curl.ts";

const HOSTILE = [
  "it's",
  "'; touch pwned; '",
  "$(touch pwned) `touch pwned` $HOME",
  "\"\\ \\' !!",
  "a\nb",
  "-rf",
  "",
  "@/etc/passwd",
  "~ * ? [a] {b,c} # & | > <",
];

/** The words that a shell parses, instead of running the command. */
function wordsOf(command: string): string[] {
  const shown = execFileSync("sh", [
    "-c",
    `for word in ${command.replace(/^curl /, "")}; do printf '%s\\0' "$word"; done`,
  ]);
  return shown.toString().split("\0").slice(0, -1);
}

test("a shell parses every quoted text unchanged", () => {
  for (const text of HOSTILE) expect(wordsOf(`curl ${quote(text)}`)).toEqual([text]);
});

test("a shell passes the body unchanged", () => {
  for (const text of HOSTILE) {
    const words = wordsOf(
      curlOf("POST", "http://127.0.0.1:8080/v1/check", { "content-type": "application/json" }, { text }),
    );
    expect(words.slice(0, 7)).toEqual([
      "-sS",
      "-i",
      "-X",
      "POST",
      "http://127.0.0.1:8080/v1/check",
      "-H",
      "content-type: application/json",
    ]);
    expect(words[7]).toBe("--data-raw");
    expect(JSON.parse(words[8]!)).toEqual({ text });
    expect(words).toHaveLength(9);
  }
});

test("the command contains no control or format characters", () => {
  const text = "\u001b[201~\u0007\u0000\r\n\u009b31m\u202e\u200b\u2066\ufeff\u{e0041}";
  const command = curlOf("GET", `http://h/${text}`, { "x-a": `b${text}` }, { text });
  expect(command).not.toMatch(/[^\x20-\x7e]/);
  expect(JSON.parse(wordsOf(command).at(-1)!)).toEqual({ text });
});

test("a path with braces is one address", () => {
  expect(curlOf("GET", "http://127.0.0.1/a{b,c}", {})).toContain("--globoff");
  expect(curlOf("GET", "http://127.0.0.1/abc", {})).not.toContain("--globoff");
});

test("a request without a body has none", () => {
  expect(curlOf("DELETE", "http://127.0.0.1:8080/v1/rules/3", {})).toBe(
    "curl -sS -i -X DELETE http://127.0.0.1:8080/v1/rules/3",
  );
});
