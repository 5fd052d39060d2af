import { expect, test } from "@playwright/test";
import { headersOf } from "../../src/api/client.ts";
import { refusalText } from "../../src/api/refusal.ts";

test("a reason is sent as UTF-8 in one line, and left out if it is empty", () => {
  const reasonOf = (reason: string | undefined) => headersOf({ reason })["x-sluicegate-reason"];
  expect(reasonOf(undefined)).toBeUndefined();
  expect(reasonOf("  \t ")).toBeUndefined();
  expect(reasonOf(" incident 7\r\nx: y ")).toBe("incident 7  x: y");
  const sent = reasonOf("café ☕");
  expect(Buffer.from(sent!, "latin1").toString("utf8")).toBe("café ☕");
  // Every character is a byte, as the browser requires.
  expect(new Headers({ reason: sent! }).get("reason")).toBe(sent);
});

test("creating without replacing is a condition of the request", () => {
  expect(headersOf({ ifNoneMatch: true })).toEqual({ "if-none-match": "*" });
  expect(headersOf({ ifNoneMatch: false })).toEqual({});
});

test("a refusal says its cause and what to do", () => {
  expect(refusalText(401, false)).toMatch(/only callers that it knows.*sign in with a token whose role is admin/);
  expect(refusalText(401, true)).toMatch(/does not know your token/);
  expect(refusalText(403, true)).toMatch(/role read/);
});
