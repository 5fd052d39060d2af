import { execFileSync } from "node:child_process";
import { expect, test } from "@playwright/test";
import { laneOf, takeBody } from "../../src/playground/lane.ts";
import { takeCurl } from "../../src/playground/take.ts";

/** The words that a shell parses from a line that starts with `curl`. */
function words(line: string): string[] {
  const script = `curl() { for word in "$@"; do printf '%s\\0' "$word"; done; }\n${line}`;
  return execFileSync("/bin/sh", ["-c", script], { stdio: "pipe" }).toString().split("\0").slice(0, -1);
}

const HOSTILE = [
  "plain",
  "it's",
  "'; touch /tmp/pwned; '",
  "$(id)",
  "`id`",
  '"$HOME"',
  "a\\b\\'c",
  "two\nlines",
  "!history !!",
  "@/etc/passwd",
  "-o /tmp/x",
  "%00 {a,b} * ? ~ # & | < > ;",
  "'''",
  "",
];

test("the curl command sends the same request for any key", () => {
  for (const key of HOSTILE) {
    const body = takeBody(key, laneOf("x"), 3);
    const [, , , method, url, header, type, data, json, ...rest] = words(takeCurl("http://127.0.0.1:8080", body));
    expect([method, header, data, rest]).toEqual(["POST", "-H", "--data-raw", []]);
    expect(url).toBe("http://127.0.0.1:8080/v1/take?deny=429");
    expect(type).toBe("content-type: application/json");
    expect(JSON.parse(json!)).toEqual({ key, capacity: 10, refill_rate: 1, refill_interval: 1, cost: 3 });
  }
});
