import { expect, test } from "@playwright/test";
import { bodyOf, formOf, isSameForm, NEW_FORM, quotaOfForm } from "../../src/rules/form.ts";
import { microsOf, perWords, timeOf, timeText, type Unit } from "../../src/rules/time.ts";
import { sampleRule } from "./sample-rule.ts";

const RULE = sampleRule({
  rule_id: 5,
  key_pattern: "login:{ip}",
  scope: "ip",
  rate_per_second: 0.0833,
  tokens: 5,
  period: 60,
  burst_capacity: 7,
  conditions: { endpoint: "/login", method: "!GET|HEAD" },
  version: 3,
});

test("a time is shown in the largest unit in which it is whole", () => {
  const shown = (seconds: number) => timeText(timeOf(seconds));
  expect(shown(1)).toBe("1 second");
  expect(shown(60)).toBe("1 minute");
  expect(shown(90)).toBe("90 second");
  expect(shown(7200)).toBe("2 hour");
  expect(shown(1_814_400)).toBe("21 day");
  expect(shown(0.5)).toBe("500 ms");
  expect(shown(62.5)).toBe("62.5 second");
  expect(shown(0.00025)).toBe("250 us");
  expect(shown(0.000001)).toBe("1 us");
  expect(shown(1.000001)).toBe("1.000001 second");
});

test("no duration loses a microsecond in the form", () => {
  // The last is the longest that a rule may have: 2^52 microseconds.
  for (const seconds of [0.000001, 0.123457, 0.1, 0.3, 1.1, 62.5, 86_399.999999, 4_503_599_627.370496]) {
    const time = timeOf(seconds);
    expect(microsOf(time)).toBe(BigInt(Math.round(seconds * 1e6)));
  }
});

test("invalid durations are undefined", () => {
  const micros = (amount: string, unit: Unit = "second") => microsOf({ amount, unit });
  for (const amount of ["", "0", "0.0", "-1", "1e3", "1,5", "one", "0.0000001"]) expect(micros(amount)).toBeUndefined();
  expect(micros(" 1.5 ", "minute")).toBe(90_000_000n);
  expect(micros("0.5", "us")).toBeUndefined();
});

test("durations as text", () => {
  const per = (amount: string, unit: Unit) => perWords({ amount, unit });
  expect(per("1", "second")).toBe("second");
  expect(per("5", "minute")).toBe("5 minutes");
  expect(per("1", "ms")).toBe("1 ms");
  expect(per("250", "us")).toBe("250 µs");
});

test("an unchanged form is sent as the rule was", () => {
  expect(bodyOf(formOf(RULE), RULE)).toMatchObject({
    key_pattern: "login:{ip}",
    scope: "ip",
    tokens: 5,
    period: "1 minute",
    burst_capacity: 7,
    plan: null,
    algorithm: "token_bucket",
    refill: "continuous",
    mode: "enforce",
    on_error: "local",
    path: "exact",
    is_active: true,
    description: null,
    conditions: { endpoint: "/login", method: "!GET|HEAD" },
    name: null,
    replaces: [],
  });
});

test("columns that the service sets are not sent", () => {
  for (const column of ["rule_id", "rate_per_second", "created_at", "version"]) {
    expect(bodyOf(formOf(RULE), RULE)).not.toHaveProperty(column);
  }
});

test("the largest numbers are sent exactly", () => {
  const rule = { ...RULE, tokens: 4_503_599_627_370_496, burst_capacity: 4_503_599_627_370_495 };
  const body = bodyOf(formOf(rule), rule);
  expect(JSON.stringify([body.tokens, body.burst_capacity])).toBe("[4503599627370496,4503599627370495]");
});

test("numbers that JSON cannot carry exactly are sent as text", () => {
  const digits = ["9".repeat(400), "9007199254740993", "9007199254740992"];
  for (const text of digits) {
    const body = JSON.parse(JSON.stringify(bodyOf({ ...NEW_FORM, tokens: text, burst: text })));
    expect(body).toMatchObject({ tokens: text, burst_capacity: text });
  }
  expect(bodyOf({ ...NEW_FORM, tokens: "9007199254740991" }).tokens).toBe(9_007_199_254_740_991);
});

test("text that is not a number is sent unchanged, empty text is not sent", () => {
  const body = bodyOf({ ...NEW_FORM, tokens: "many", burst: "", period: "" });
  expect(body.tokens).toBe("many");
  expect(body).not.toHaveProperty("burst_capacity");
  expect(body).not.toHaveProperty("period");
  expect(bodyOf({ ...NEW_FORM, tokens: "1.5" }).tokens).toBe("1.5");
});

test("each algorithm sends only its own fields", () => {
  const window = bodyOf({ ...NEW_FORM, algorithm: "fixed_window", maxWait: "2" });
  expect(window).not.toHaveProperty("burst_capacity");
  expect(window).not.toHaveProperty("refill");
  expect(window).not.toHaveProperty("max_wait");
  const queue = bodyOf({ ...NEW_FORM, algorithm: "leaky_bucket", maxWait: "2" });
  expect(queue).toMatchObject({ burst_capacity: 50, max_wait: "2 second" });
  expect(queue).not.toHaveProperty("refill");
});

test("an unlimited rule keeps a valid quota", () => {
  expect(bodyOf({ ...NEW_FORM, mode: "unlimited" })).toMatchObject({ tokens: 10, period: "1 second" });
  expect(bodyOf({ ...NEW_FORM, mode: "unlimited", tokens: "x" })).not.toHaveProperty("tokens");
});

test("plans: every one, one by name, and the default", () => {
  for (const plan of [null, "free", "default", " odd "]) {
    const rule = { ...RULE, plan };
    expect(bodyOf(formOf(rule), rule).plan).toBe(plan);
  }
});

test("a custom scope stays, a default one follows the pattern", () => {
  const own = sampleRule({ ...RULE, scope: "custom" });
  expect(formOf(own).scope).toBe("custom");
  expect(bodyOf({ ...formOf(own), keyPattern: "user:{user_id}" }, own).scope).toBe("custom");
  expect(formOf(RULE).scope).toBe("");
  expect(bodyOf({ ...formOf(RULE), keyPattern: "user:{user_id}" }, RULE)).not.toHaveProperty("scope");
  expect(bodyOf({ ...formOf(own), scope: "" }, own)).not.toHaveProperty("scope");
});

test("hostile names of attributes are names", () => {
  const rule = { ...RULE, conditions: JSON.parse('{"__proto__":"x","constructor":"!y"}') };
  expect(JSON.stringify(bodyOf(formOf(rule), rule).conditions)).toBe('{"__proto__":"x","constructor":"!y"}');
});

test("names to replace are one per line", () => {
  const rule = { ...RULE, replaces: ["by address", "a,b"] };
  expect(formOf(rule).replaces).toBe("by address\na,b");
  expect(bodyOf({ ...NEW_FORM, replaces: "by address\n\na,b\n" }).replaces).toEqual(["by address", "a,b"]);
});

test("an incomplete quota is undefined", () => {
  expect(quotaOfForm(NEW_FORM)).toMatchObject({ tokens: 10n, capacity: 50n, periodMicros: 1_000_000n });
  expect(quotaOfForm({ ...NEW_FORM, burst: "" })?.capacity).toBe(10n);
  for (const changed of [{ tokens: "0" }, { tokens: "" }, { period: "x" }, { burst: "-1" }]) {
    expect(quotaOfForm({ ...NEW_FORM, ...changed })).toBeUndefined();
  }
});

test("forms are equal if all texts are", () => {
  expect(isSameForm(formOf(RULE), formOf({ ...RULE }))).toBe(true);
  expect(isSameForm(formOf(RULE), formOf({ ...RULE, conditions: {} }))).toBe(false);
});
