import { expect, test } from "@playwright/test";
import type { Override, Rule } from "../../src/api/types.ts";
import { bucketPath, othersOf, pathOrProblem, placeOf } from "../../src/live/subject/buckets.ts";
import {
  numberOrText,
  overrideText,
  periodText,
  quotaText,
  textOrNothing,
  untilText,
} from "../../src/live/subject/words.ts";
import { otherPlaceholders, placeholders, subjectAttribute } from "../../src/ui/pattern.ts";
import { sampleRule } from "./sample-rule.ts";

function ruleOf(rule_id: number, key_pattern: string, more: Partial<Rule> = {}): Rule {
  const quota = { tokens: 5, period: 60, burst_capacity: 5, rate_per_second: 5 / 60 };
  return sampleRule({ rule_id, key_pattern, scope: "custom", ...quota, ...more });
}

test("the subject is the user, else the address, else the first placeholder", () => {
  expect(subjectAttribute("user:{user_id}")).toBe("user_id");
  expect(subjectAttribute("api:{endpoint}:{ip}:{user_id}")).toBe("user_id");
  expect(subjectAttribute("api:{endpoint}:{ip}")).toBe("ip");
  expect(subjectAttribute("tenant:{tenant}:{endpoint}")).toBe("tenant");
  expect(subjectAttribute("global")).toBeUndefined();
  expect(subjectAttribute("endpoint:/api/*")).toBeUndefined();
});

test("other placeholders are listed without duplicates", () => {
  expect(placeholders("{a}{b}{a}")).toEqual(["a", "b"]);
  expect(otherPlaceholders("api:{endpoint}:{user_id}:{endpoint}")).toEqual(["endpoint"]);
  expect(otherPlaceholders("user:{user_id}")).toEqual([]);
  expect(otherPlaceholders("global")).toEqual([]);
});

test("a bucket needs values of all placeholders", () => {
  const rule = ruleOf(1, "api:{endpoint}:{user_id}:{tenant}");
  expect(placeOf(rule, { endpoint: "/a", other: "x" })).toMatchObject({
    further: { endpoint: "/a" },
    missing: ["tenant"],
  });
  expect(placeOf(rule, { endpoint: "", tenant: "t" })).toMatchObject({
    further: { tenant: "t" },
    missing: ["endpoint"],
  });
  for (const name of ["constructor", "__proto__"]) {
    const pattern = `{user_id}:{${name}}`;
    expect(placeOf(ruleOf(3, pattern), {})).toMatchObject({ further: {}, missing: [name] });
    expect(placeOf(ruleOf(3, pattern), Object.fromEntries([[name, "x"]])).missing).toEqual([]);
  }
  expect(placeOf(ruleOf(2, "global"), {})).toMatchObject({ further: {}, missing: [] });
});

test("other rules are active, have buckets and the same subject attribute", () => {
  const rules = [
    ruleOf(1, "user:{user_id}"),
    ruleOf(2, "user:{user_id}", { plan: "pro" }),
    ruleOf(3, "ip:{ip}"),
    ruleOf(4, "pay:{user_id}", { is_active: false }),
    ruleOf(5, "api:{endpoint}:{user_id}"),
    ruleOf(6, "vip:{user_id}", { mode: "unlimited" }),
    ruleOf(7, "global"),
  ];
  expect(othersOf(rules[0]!, rules).map(({ rule_id }) => rule_id)).toEqual([2, 5]);
  expect(othersOf(rules[6]!, rules)).toEqual([]);
});

test("any subject is one segment of a path", () => {
  expect(bucketPath(5, "203.0.113.9")).toBe("/v1/buckets/5/203.0.113.9");
  expect(bucketPath(1, "../../x?y#z")).toBe("/v1/buckets/1/..%2F..%2Fx%3Fy%23z");
  expect(bucketPath(1, "<img src=x>")).toBe("/v1/buckets/1/%3Cimg%20src%3Dx%3E");
});

test("a subject that a browser would normalise away has no path", () => {
  for (const subject of ["", ".", ".."]) {
    expect(bucketPath(1, subject)).toBeUndefined();
    expect(() => pathOrProblem(1, subject)).toThrow("command line");
  }
});

test("quotas and overrides as text", () => {
  expect(quotaText(ruleOf(1, "x"))).toBe("burst 5, refilling 5 per minute");
  expect(quotaText(ruleOf(1, "x", { algorithm: "fixed_window" }))).toBe("5 per minute, by the clock");
  const override: Override = {
    override_id: 1,
    rule_id: 1,
    subject: "42",
    kind: "quota",
    tokens: 100,
    period: 1,
    rate_per_second: 100,
    burst_capacity: 500,
    algorithm: "token_bucket",
    refill: "continuous",
    max_wait: null,
    reason: "",
    expires_at: null,
    created_by: "local",
    created_at: "2026-08-01T12:00:00Z",
    version: 1,
  };
  expect(overrideText(override)).toBe("burst 500, refilling 100 per second");
  expect(overrideText({ ...override, kind: "blocked", tokens: null })).toBe("all requests denied");
  expect(overrideText({ ...override, kind: "unlimited", tokens: null })).toBe("no limit");
  expect(untilText(null)).toBe("without expiry");
  expect(untilText("2026-08-01T14:00:00.987701Z")).toBe("until 2026-08-01 14:00:00 UTC");
});

test("periods are written in a form that the service accepts", () => {
  expect([1, 60, 7200, 86_400, 62.5, 90].map(periodText)).toEqual([
    "1s",
    "1 minute",
    "2 hours",
    "1 day",
    "62.5s",
    "90s",
  ]);
});

test("text that is not a whole number is sent unchanged", () => {
  expect(numberOrText(" 12 ")).toBe(12);
  expect(numberOrText("-1")).toBe("-1");
  expect(numberOrText("1e3")).toBe("1e3");
  expect(numberOrText("99999999999999999999")).toBe("99999999999999999999");
  expect(numberOrText("  ")).toBeUndefined();
  expect(textOrNothing(" x ")).toBe("x");
  expect(textOrNothing(" ")).toBeUndefined();
});
