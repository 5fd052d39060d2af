import { expect, test } from "@playwright/test";
import type { Explained, Explanation, Rule } from "../../src/api/types.ts";
import { prettyOf, resultOf } from "../../src/explain/check-result.ts";
import { hintsOf } from "../../src/explain/hints.ts";
import { bodyOf, errorsOf, fieldsOf, paramsOf } from "../../src/explain/request.ts";
import { holdingOf, outcomeOf, pauseOf } from "../../src/explain/verdict.ts";

const NOTHING = fieldsOf(new URLSearchParams());

test("the fields are in the address and restored from it", () => {
  const fields = {
    user_id: "<img src=x>",
    ip: "2001:db8::1",
    endpoint: "/a?b=c&d",
    method: "POST",
    plan: "free",
    cost: "3",
    attributes: [
      { name: "tenant", value: "a&b=c" },
      { name: "user_id", value: "not the field" },
      { name: "__proto__", value: "x" },
    ],
  };
  expect(fieldsOf(new URLSearchParams(paramsOf(fields).toString()))).toEqual(fields);
});

test("an attribute without a name is not in the address", () => {
  expect(paramsOf({ ...NOTHING, attributes: [{ name: "", value: "x" }] }).toString()).toBe("");
});

test("only filled fields are sent", () => {
  expect(bodyOf(NOTHING)).toEqual({ body: {} });
  const fields = { ...NOTHING, user_id: "42", cost: " 0 ", attributes: [{ name: "a", value: "" }] };
  expect(bodyOf(fields)).toEqual({ body: { user_id: "42", cost: 0, attributes: { a: "" } } });
});

test("an attribute may have any name", () => {
  const sendable = bodyOf({ ...NOTHING, attributes: [{ name: "__proto__", value: "x" }] });
  expect(JSON.stringify(sendable)).toBe('{"body":{"attributes":{"__proto__":"x"}}}');
});

test("a cost that is not a whole number is an error", () => {
  for (const cost of ["-1", "1.5", "1e3", "many", "0x10"]) {
    expect(bodyOf({ ...NOTHING, cost })).toEqual({ errors: { cost: "is not a whole number" } });
  }
  expect(bodyOf({ ...NOTHING, cost: "9007199254740993" })).toEqual({ errors: { cost: "is too large" } });
});

test("attributes need distinct names", () => {
  const twice = [
    { name: "a", value: "1" },
    { name: "a", value: "2" },
  ];
  expect(bodyOf({ ...NOTHING, attributes: twice })).toEqual({ errors: { "attributes.a": "is duplicated" } });
  expect(bodyOf({ ...NOTHING, attributes: [{ name: "", value: "1" }] })).toHaveProperty("errors.attributes");
  expect(bodyOf({ ...NOTHING, attributes: [{ name: "", value: "" }] })).toEqual({ body: {} });
});

test("an error is shown at the field that it names", () => {
  expect(errorsOf({ field: "ip", detail: "ip: is not an address" })).toEqual({ ip: "is not an address" });
  expect(errorsOf({ field: "attributes.a", detail: "attributes.a: has more than 1024 bytes" })).toEqual({
    "attributes.a": "has more than 1024 bytes",
  });
  expect(errorsOf({ field: undefined, detail: "x" })).toEqual({});
  expect(errorsOf({ field: "body", detail: "x" })).toEqual({});
});

function rule(of: Partial<Explained>): Explained {
  return {
    rule_id: 1,
    scope: "user",
    key_pattern: "user:{user_id}",
    plan: null,
    mode: "enforce",
    applies: true,
    reason: "applies",
    bucket_key: "user:42",
    subject: "42",
    override: null,
    limit: 10,
    remaining: 4,
    reset_after_ms: 6000,
    retry_after_ms: 0,
    would_allow: true,
    ...of,
  };
}

function explanation(allowed: boolean, ...rules: Explained[]): Explanation {
  return { allowed, cost: 1, rules, more: 0, hints: [] };
}

test("the verdict names the enforced rule with the longest wait", () => {
  const denied = { would_allow: false };
  const outcome = outcomeOf(
    explanation(
      false,
      rule({ rule_id: 1, ...denied, retry_after_ms: 100 }),
      rule({ rule_id: 2, ...denied, retry_after_ms: 900 }),
      rule({ rule_id: 3, ...denied, retry_after_ms: 5000, mode: "shadow" }),
      rule({ rule_id: 4, applies: false, would_allow: null, retry_after_ms: null }),
    ),
  );
  expect(outcome).toMatchObject({ kind: "denied", retryAfterMs: 900, rule: { rule_id: 2 } });
});

test("never is the longest wait, and ties go by scope and id", () => {
  const denied = { would_allow: false };
  const never = outcomeOf(
    explanation(false, rule({ ...denied, retry_after_ms: 900 }), rule({ rule_id: 2, ...denied, retry_after_ms: null })),
  );
  expect(never).toMatchObject({ kind: "never", rule: { rule_id: 2 } });
  const tie = { ...denied, retry_after_ms: 50 };
  const first = outcomeOf(
    explanation(
      false,
      rule({ ...tie }),
      rule({ rule_id: 9, scope: "ip", ...tie }),
      rule({ rule_id: 8, scope: "ip", ...tie }),
    ),
  );
  expect(first).toMatchObject({ rule: { rule_id: 8 } });
});

test("an allowed request has the number of rules that count it", () => {
  expect(outcomeOf(explanation(true))).toEqual({ kind: "allowed", counted: 0 });
  expect(outcomeOf(explanation(true, rule({}), rule({ applies: false })))).toEqual({ kind: "allowed", counted: 1 });
  expect(outcomeOf(explanation(false, rule({})))).toEqual({ kind: "unknown" });
});

test("a bucket is full after its reset time", () => {
  expect(holdingOf(rule({}), 1000)).toMatchObject({ remaining: 4, level: 0.4, fullIn: 5000, enoughIn: 0 });
  expect(holdingOf(rule({}), 6000)).toMatchObject({ remaining: 10, level: 1, fullIn: 0 });
  expect(holdingOf(rule({ retry_after_ms: null }), 0)?.enoughIn).toBeNull();
  expect(holdingOf(rule({ limit: null }), 0)).toBeUndefined();
  expect(holdingOf(rule({ limit: 0, remaining: 0 }), 0)).toBeUndefined();
});

test("the next request follows the end of a wait, within bounds", () => {
  expect(pauseOf(undefined, 2000)).toBe(2000);
  expect(pauseOf(explanation(true, rule({})), 2000)).toBe(2000);
  expect(pauseOf(explanation(false, rule({ retry_after_ms: 700 })), 2000)).toBe(700);
  expect(pauseOf(explanation(false, rule({ retry_after_ms: 7000 })), 2000)).toBe(2000);
  expect(pauseOf(explanation(false, rule({ retry_after_ms: 1 })), 2000)).toBe(100);
});

test("hints come from the rules", () => {
  const some = (of: Partial<Rule>) => ({ plan: null, key_pattern: "global", conditions: {}, ...of }) as Rule;
  const hints = hintsOf([
    some({ plan: "free", key_pattern: "user:{user_id}" }),
    some({ plan: "default", key_pattern: "endpoint:/api/search" }),
    some({ plan: "free", key_pattern: "x:{tenant}:{ip}", conditions: { endpoint: "/login", method: "LOCK" } }),
    some({ key_pattern: "endpoint:/a/*", conditions: { endpoint: "/api/**", region: "eu" } }),
    some({ conditions: { endpoint: "!/health" } }),
  ]);
  expect(hints.plans).toEqual(["free"]);
  expect(hints.endpoints).toEqual(["/api/search", "/login"]);
  expect(hints.methods).toEqual(["GET", "POST", "PUT", "PATCH", "DELETE", "LOCK"]);
  expect(hints.attributes).toEqual(["tenant", "region"]);
});

test("an answer is allowed, denied or refused", () => {
  const answer = (status: number, text: string) => ({ id: 1, answer: { status, statusText: "", headers: [], text } });
  expect(resultOf(answer(200, '{"allowed":true}')).word).toBe("allowed");
  expect(resultOf(answer(200, '{"allowed":false}')).word).toBe("denied");
  expect(resultOf(answer(503, '{"allowed":true}')).word).toBe("refused");
  expect(resultOf(answer(200, "<html>")).word).toBe("refused");
  expect(prettyOf("<html>")).toBe("<html>");
  expect(prettyOf('{"a":1}')).toBe('{\n  "a": 1\n}');
});
