import { expect, test } from "@playwright/test";
import type { Rule } from "../../src/api/types.ts";
import { drawingOf } from "../../src/rules/drawing.ts";
import { NEW_FORM, quotaOfForm, type RuleForm } from "../../src/rules/form.ts";
import { endpointOf, groupOf, groupWords, patternFor, suggestedScope } from "../../src/rules/pattern.ts";
import { fullMs, matchParts, meaningOf, plain, quotaWords } from "../../src/rules/words.ts";
import { placeholders } from "../../src/ui/pattern.ts";

test("the placeholders of a pattern", () => {
  expect(placeholders("api:{endpoint}:{user_id}")).toEqual(["endpoint", "user_id"]);
  expect(placeholders("global")).toEqual([]);
  expect(placeholders("open:{user")).toEqual([]);
  expect(endpointOf("endpoint:/api/**")).toBe("/api/**");
  expect(endpointOf("endpoint:{endpoint}")).toBeUndefined();
});

test("the choice of a pattern, and the pattern of a choice", () => {
  expect(groupOf("user:{user_id}")).toBe("user");
  expect(groupOf("login:{ip}")).toBe("ip");
  expect(groupOf("global")).toBe("everyone");
  expect(groupOf("endpoint:/api/search")).toBe("path");
  expect(groupOf("api:{endpoint}:{user_id}")).toBe("own");
  expect(groupOf("tenant:{tenant}")).toBe("own");
  expect(groupOf("user:{user_id")).toBe("own");
  expect(patternFor("ip", "user:{user_id}")).toBe("ip:{ip}");
  expect(patternFor("everyone", "ip:{ip}")).toBe("global");
  expect(patternFor("path", "ip:{ip}")).toBe("endpoint:/");
  // A pattern that belongs to the choice already is kept.
  expect(patternFor("ip", "login:{ip}")).toBe("login:{ip}");
  expect(patternFor("own", "login:{ip}")).toBe("login:{ip}");
});

test("the default scope of a pattern is that of the service", () => {
  const scopes = {
    "user:{user_id}": "user",
    "ip:{ip}": "ip",
    "api:{endpoint}:{user_id}": "endpoint",
    "tenant:{tenant}:{ip}": "custom",
    "endpoint:/api/search": "endpoint",
    global: "global",
    anything: "custom",
  };
  for (const [pattern, scope] of Object.entries(scopes)) expect(suggestedScope(pattern)).toBe(scope);
});

test("the grouping of a pattern as text", () => {
  expect(groupWords("user:{user_id}")).toBe("each user");
  expect(groupWords("a:{endpoint}:{user_id}:{tenant}")).toBe("each endpoint, user and tenant");
  expect(groupWords("global")).toBe("all clients together");
  expect(groupWords("x:{constructor}")).toBe("each constructor");
});

test("conditions as text", () => {
  const words = (conditions: Record<string, string>, key_pattern = "global") =>
    plain(matchParts({ key_pattern, conditions }));
  expect(words({})).toBe("");
  expect(words({ endpoint: "/login", method: "POST" })).toBe("endpoint is /login and method is POST");
  expect(words({ endpoint: "!/a|/b|/c" })).toBe("endpoint is not /a, /b or /c");
  expect(words({ endpoint: "/api/** !/api/login|/api/me" })).toBe("endpoint is /api/** but not /api/login or /api/me");
  expect(words({}, "endpoint:/api/search")).toBe("endpoint is /api/search");
  expect(words({ a: "x|y" })).toBe("a is x|y");
});

test("text chosen by users is marked in a sentence", () => {
  const parts = matchParts({ key_pattern: "global", conditions: { endpoint: "<b>" } });
  expect(parts.filter((part) => part.isKey).map((part) => part.text)).toEqual(["<b>"]);
});

const QUOTA = { tokens: 10, period: 1, burst_capacity: 50, refill: "continuous", mode: "enforce", max_wait: null };

test("quotas as text", () => {
  const words = (changed: Partial<Rule>) =>
    quotaWords({
      ...QUOTA,
      key_pattern: "g",
      conditions: {},
      replaces: [],
      plan: null,
      algorithm: "token_bucket",
      ...changed,
    } as Rule);
  expect(words({})).toBe("burst 50, refilling 10 per second");
  expect(words({ period: 300, burst_capacity: 2000 })).toBe("burst 2,000, refilling 10 per 5 minutes");
  expect(words({ refill: "interval" })).toBe("burst 50, 10 more every second");
  expect(words({ algorithm: "fixed_window" })).toBe("10 per second, by the clock");
  expect(words({ algorithm: "sliding_window", period: 60 })).toBe("10 in any minute");
  expect(words({ algorithm: "sliding_counter" })).toBe("about 10 in any second");
  expect(words({ algorithm: "leaky_bucket" })).toBe("10 per second, 50 in the queue");
  expect(words({ mode: "unlimited" })).toBe("no limit");
});

test("the effect of a form as text", () => {
  const meaning = (changed: Partial<RuleForm>) => meaningOf({ ...NEW_FORM, ...changed });
  expect(meaning({})).toBe(
    "Each user may send 50 at once, then 10 per second; an empty bucket is full again after 5 s. " +
      "Requests without user_id are not counted.",
  );
  expect(meaning({ keyPattern: "global", refill: "interval", burst: "15" })).toBe(
    "All clients together may send 15 at once, then 10 more at the end of every second; an empty bucket is full again after 2 s.",
  );
  expect(meaning({ keyPattern: "global", algorithm: "fixed_window" })).toContain(
    "10 per second by the clock, and across a window boundary up to 20 in the same time",
  );
  expect(meaning({ keyPattern: "global", mode: "shadow" })).toContain("allowed and recorded as violations");
  expect(meaning({ keyPattern: "global", algorithm: "leaky_bucket", maxWait: "2" })).toContain("at most 2 seconds");
  expect(meaning({ keyPattern: "global", mode: "unlimited", replaces: "by address" })).toContain("named by address");
  expect(meaning({ tokens: "" })).toBe("");
});

test("the time to full is exact, and rounded up", () => {
  const form = { ...NEW_FORM, tokens: "3", burst: "7" };
  // 7 tokens at 3 per second are 2333.3 ms; three periods if they come at the end of each.
  expect(fullMs(form, quotaOfForm(form)!)).toBe(2334);
  expect(fullMs({ refill: "interval" }, quotaOfForm(form)!)).toBe(3000);
});

test("a curve begins with the burst and ends at the top", () => {
  const drawing = drawingOf(NEW_FORM, quotaOfForm(NEW_FORM)!);
  expect(drawing).toEqual({
    points: [
      [0, 0],
      [0, 0.5],
      [1, 1],
    ],
    micros: 5_000_000n,
    count: 100n,
  });
  const form = { ...NEW_FORM, algorithm: "fixed_window" as const };
  const stairs = drawingOf(form, quotaOfForm(form)!);
  expect(stairs.count).toBe(40n);
  expect(stairs.points.slice(0, 4)).toEqual([
    [0, 0],
    [0, 0.25],
    [0.25, 0.25],
    [0.25, 0.5],
  ]);
});
