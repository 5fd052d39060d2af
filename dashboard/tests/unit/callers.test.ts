import { expect, test } from "@playwright/test";
import type { Caller } from "../../src/api/types.ts";
import { changeBody, createBody, formOf, messageOf, NEW_FORM, placeOf, withRight } from "../../src/callers/form.ts";
import { expiryOf, lastUseText, SOON_MS } from "../../src/callers/words.ts";

const NOW = Date.parse("2026-08-01T12:00:00Z");

const CALLER: Caller = {
  caller_id: 1,
  name: "checkout",
  rights: ["check", "take"],
  namespace: "team-a",
  certificate: null,
  expires_at: "2026-09-01T12:00:00Z",
  last_used_at: null,
  created_by: "token:ops",
  created_at: "2026-07-01T12:00:00Z",
};

test("a new caller is sent without the fields that are empty", () => {
  expect(createBody({ ...NEW_FORM, name: " checkout " })).toEqual({ name: "checkout", rights: ["check"] });
  const all = { namespace: "team-a", certificate: "a.example", hasToken: false, expiry: "in", expiresIn: "8 hours" };
  expect(createBody({ ...NEW_FORM, ...all, name: "x", expiry: "in" })).toEqual({
    name: "x",
    rights: ["check"],
    namespace: "team-a",
    certificate: "a.example",
    expires_in: "8 hours",
    token: false,
  });
});

test("a change sends only the fields that were changed", () => {
  const form = formOf(CALLER);
  expect(changeBody(form, CALLER)).toEqual({});
  expect(changeBody({ ...form, rights: ["take", "check"] }, CALLER)).toEqual({});
  expect(changeBody({ ...form, rights: ["check"], namespace: " " }, CALLER)).toEqual({
    rights: ["check"],
    namespace: null,
  });
  expect(changeBody({ ...form, certificate: "a.example", expiry: "never" }, CALLER)).toEqual({
    certificate: "a.example",
    expires_at: null,
  });
  expect(changeBody({ ...form, expiry: "never" }, { ...CALLER, expires_at: null })).toEqual({});
  expect(changeBody({ ...form, expiry: "in", expiresIn: "1 day" }, CALLER)).toEqual({ expires_in: "1 day" });
});

test("rights are added and removed in a fixed order", () => {
  expect(withRight(["refund"], "check", true)).toEqual(["check", "refund"]);
  expect(withRight(["check", "refund"], "check", false)).toEqual(["refund"]);
});

test("an error is shown at its field, without the name of the field", () => {
  const at = (field: string | undefined) => placeOf({ field });
  expect(["name", "rights", "rights[2]", "expires_in", "expires_at"].map(at)).toEqual([
    "name",
    "rights",
    "rights",
    "expires",
    "expires",
  ]);
  expect([undefined, "X-Sluicegate-Reason", "constructor"].map(at)).toEqual(["form", "form", "form"]);
  expect(messageOf({ field: "rights[0]", detail: "rights[0]: is duplicated" })).toBe("is duplicated");
  expect(messageOf({ field: undefined, detail: "there are too many" })).toBe("there are too many");
});

test("an expiry has its remaining time", () => {
  expect(expiryOf(null, NOW)).toEqual({ text: "never", kind: "never" });
  expect(expiryOf("2026-08-01T12:00:00Z", NOW)).toEqual({ text: "expired", kind: "expired" });
  expect(expiryOf("2026-08-01T14:30:00Z", NOW)).toEqual({ text: "in 2 h 30 min", kind: "soon" });
  expect(expiryOf(new Date(NOW + SOON_MS).toISOString(), NOW)).toEqual({ text: "in 7 d", kind: "later" });
});

test("a last use is a time ago, and not more exact than it is recorded", () => {
  expect(lastUseText(null, NOW)).toBe("never");
  expect(lastUseText("2026-08-01T12:00:20Z", NOW)).toBe("in the last minute");
  expect(lastUseText("2026-08-01T09:00:00Z", NOW)).toBe("3 h ago");
});
