import { expect, test } from "@playwright/test";
import { ACTS, actName } from "../../src/history/acts.ts";
import { differenceOf, isRule } from "../../src/history/difference.ts";
import { paramsOf, queryOf, searchOf } from "../../src/history/search.ts";
import { sampleRule } from "./sample-rule.ts";

const NOW = Date.parse("2026-08-01T12:00:00Z");

test("a search is in the address and restored from it", () => {
  const text = "act=rule.update&who=token%3Aops&rule_id=5&subject=%3Cb%3E&target=checkout&last=7d";
  const search = searchOf(new URLSearchParams(text));
  expect(search.subject).toBe("<b>");
  expect(paramsOf(search).toString()).toBe(text);
  expect(queryOf(search, NOW)).toEqual({
    act: "rule.update",
    who: "token:ops",
    rule_id: "5",
    subject: "<b>",
    target: "checkout",
    from: "2026-07-25T12:00:00.000Z",
  });
});

test("acts have a name, and unknown ones are shown as they are", () => {
  expect(actName("override.expire")).toBe("Override expired");
  for (const act of ["constructor", "rule.paint"]) expect(actName(act)).toBe(act);
  expect(new Set(ACTS.map(actName)).size).toBe(ACTS.length);
});

test("a changed rule is shown in the words of the rules view", () => {
  const before = sampleRule({ tokens: 10, period: 1 });
  expect(differenceOf(before, { ...before, tokens: 5, version: 2 })).toEqual([
    { title: "Rate", old: "10 per second", new: "5 per second" },
  ]);
});

test("other objects are compared by member, in any order", () => {
  const before = { caller_id: 1, rights: ["check"], namespace: null, limits: { a: 1, b: 2 }, version: 1 };
  const after = { caller_id: 1, rights: ["check", "take"], namespace: "x\u200b", limits: { b: 2, a: 1 }, version: 2 };
  expect(differenceOf(before, after)).toEqual([
    { title: "Rights", old: "check", new: "check, take" },
    { title: "Namespace", old: "none", new: "x\\u{200b}" },
  ]);
});

test("values have the unit of their column", () => {
  const before = { period: 60, max_wait: null, tokens: 1000, expires_at: null, reset_after_ms: 1500 };
  const after = { period: 0.5, max_wait: 2, tokens: 2000, expires_at: "2026-08-01T12:00:00.5Z", reset_after_ms: 0 };
  expect(differenceOf(before, after)).toEqual([
    { title: "Period", old: "1 minute", new: "500 ms" },
    { title: "Max wait", old: "none", new: "2 seconds" },
    { title: "Tokens", old: "1,000", new: "2,000" },
    { title: "Expires", old: "none", new: "2026-08-01 12:00:00 UTC" },
    { title: "Reset after", old: "1.5 s", new: "0 ms" },
  ]);
});

test("what was created or deleted has all its values", () => {
  const caller = { caller_id: 1, name: "a", is_new: true, expires_at: null, conditions: { ip: "10.*" } };
  expect(differenceOf(null, caller)).toEqual([
    { title: "Name", old: undefined, new: "a" },
    { title: "Is new", old: undefined, new: "yes" },
    { title: "Conditions", old: undefined, new: "ip = 10.*" },
  ]);
  expect(differenceOf(caller, null)[0]).toEqual({ title: "Name", old: "a", new: undefined });
});

test("anything that is not an object is nothing", () => {
  for (const odd of [null, undefined, "text", 5, [1]]) expect(differenceOf(odd, odd)).toEqual([]);
  expect(differenceOf("x", { tokens: 1 })).toEqual([{ title: "Tokens", old: undefined, new: "1" }]);
});

test("only a whole rule counts as a rule", () => {
  const rule = sampleRule({});
  expect(isRule(rule)).toBe(true);
  const parts = {
    conditions: null,
    replaces: [1],
    plan: 5,
    algorithm: "dice",
    tokens: "1",
    period: null,
    max_wait: {},
  };
  for (const [name, value] of Object.entries(parts)) expect(isRule({ ...rule, [name]: value }), name).toBe(false);
  for (const odd of [null, [], "rule", { ...rule, conditions: { ip: 5 } }]) expect(isRule(odd)).toBe(false);
});
