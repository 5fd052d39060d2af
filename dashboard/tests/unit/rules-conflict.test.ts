import { expect, test } from "@playwright/test";
import { Problem, problemOf } from "../../src/api/client.ts";
import type { Rule } from "../../src/api/types.ts";
import { changesOf, FIELDS, isSameIn, TEXT_COLUMNS, titleOf } from "../../src/rules/columns.ts";
import { allOf, differencesOf, mergedOf, suggestedSides } from "../../src/rules/conflict.ts";
import { draftOf, dropDraft, dropDrafts, saveDraft } from "../../src/rules/drafts.ts";
import { formErrorOf, isAdvanced, localErrorOf, placeOf } from "../../src/rules/fields.ts";
import { bodyOf, formOf, NEW_FORM, type RuleForm } from "../../src/rules/form.ts";
import { EVERY_PLAN, filterOf, filterRules, isChangeable, PAGE_ROWS, pageOf, paramsOf } from "../../src/rules/list.ts";
import { sampleRule } from "./sample-rule.ts";

const BASE = sampleRule({ plan: "free", description: "users", conditions: { endpoint: "/a", method: "GET" } });

test("columns that changed, old and new", () => {
  const changed = { ...BASE, tokens: 5, period: 60, is_active: false, plan: null, conditions: {}, version: 2 };
  expect(changesOf(BASE, changed)).toEqual([
    { title: "Conditions", old: "endpoint = /a\nmethod = GET", new: "none" },
    { title: "Rate", old: "10 per second", new: "5 per minute" },
    { title: "Plan", old: "free", new: "every plan" },
    { title: "Active", old: "on", new: "off" },
  ]);
  expect(changesOf(BASE, { ...BASE, version: 9, rate_per_second: 10.0001 })).toEqual([]);
});

test("invisible characters in a column are escaped", () => {
  const changed = { ...BASE, plan: "fr\u200bee", description: "two\nlines\u202e", replaces: ["a\u00ad"] };
  expect(changesOf(BASE, changed).map((change) => change.new)).toEqual(
    expect.arrayContaining(["fr\\u{200b}ee", "two\nlines\\u{202e}", "a\\u{ad}"]),
  );
});

test("the order of conditions is no change, that of names to replace is", () => {
  expect(isSameIn("conditions", BASE, { ...BASE, conditions: { method: "GET", endpoint: "/a" } })).toBe(true);
  expect(isSameIn("replaces", { ...BASE, replaces: ["a", "b"] }, { ...BASE, replaces: ["b", "a"] })).toBe(false);
});

const MINE: Rule = { ...BASE, burst_capacity: 80, description: "mine", mode: "shadow" };
const THEIRS: Rule = { ...BASE, tokens: 20, description: "theirs", mode: "shadow", version: 2 };
const VERSIONS = { base: BASE, mine: MINE, theirs: THEIRS };

test("differences name the side; equal changes are not a conflict", () => {
  expect(differencesOf(VERSIONS)).toEqual([
    { column: "burst_capacity", by: "mine" },
    { column: "rate", by: "theirs" },
    { column: "description", by: "both" },
  ]);
});

test("the default selection keeps the changes of both sides", () => {
  const merged = mergedOf(VERSIONS, suggestedSides(differencesOf(VERSIONS)));
  expect(merged).toMatchObject({ burst_capacity: 80, tokens: 20, description: "mine", mode: "shadow", version: 2 });
});

test("all mine, all theirs, and a mix", () => {
  const differences = differencesOf(VERSIONS);
  expect(mergedOf(VERSIONS, allOf("mine", differences))).toEqual({ ...MINE, version: 2 });
  expect(mergedOf(VERSIONS, allOf("theirs", differences))).toEqual(THEIRS);
  expect(mergedOf(VERSIONS, { rate: "mine", description: "theirs" })).toMatchObject({
    tokens: 10,
    description: "theirs",
    burst_capacity: 50,
  });
});

const FORM = {
  ...NEW_FORM,
  conditions: [
    { attribute: "endpoint", isNot: false, glob: "" },
    { attribute: "method", isNot: false, glob: "" },
  ],
};

test("fields of the service have a place in the form", () => {
  expect(placeOf("tokens", FORM)).toBe("tokens");
  expect(placeOf("rule.burst_capacity", FORM)).toBe("burst_capacity");
  expect(placeOf("rate_per_second", FORM)).toBe("tokens");
  expect(placeOf("conditions.method", FORM)).toBe("conditions.1");
  expect(placeOf("conditions.other", FORM)).toBe("conditions");
  expect(placeOf("conditions.", { ...FORM, conditions: [{ attribute: "", isNot: false, glob: "x" }] })).toBe(
    "conditions.0",
  );
  for (const field of [undefined, "", "rule_id", "nothing", "constructor"]) expect(placeOf(field, FORM)).toBe("top");
});

test("errors of hidden fields are shown at the top", () => {
  expect(placeOf("burst_capacity", { ...FORM, algorithm: "fixed_window" })).toBe("top");
  expect(placeOf("tokens", { ...FORM, mode: "unlimited" })).toBe("top");
  expect(placeOf("max_wait", FORM)).toBe("top");
  expect(placeOf("max_wait", { ...FORM, algorithm: "leaky_bucket" })).toBe("max_wait");
  expect(isAdvanced("max_wait")).toBe(true);
  expect(isAdvanced("tokens")).toBe(false);
});

test("an error at a field does not repeat its name", () => {
  const said = (field: string | undefined, detail: string) => formErrorOf(new Problem(400, detail, field), FORM);
  expect(said("tokens", "tokens: a rate of zero never refills")).toEqual({
    place: "tokens",
    text: "a rate of zero never refills",
  });
  expect(said("rule.tokens", "tokens: no")).toEqual({ place: "tokens", text: "no" });
  expect(said("rule_id", "rule_id: is taken")).toEqual({ place: "top", text: "rule_id: is taken" });
  expect(said(undefined, "the database does not answer")).toEqual({
    place: "top",
    text: "the database does not answer",
  });
});

test("errors that a body cannot express are found locally", () => {
  expect(localErrorOf(FORM)).toBeUndefined();
  const twice = [...FORM.conditions, { attribute: "endpoint", isNot: true, glob: "/b" }];
  expect(localErrorOf({ ...FORM, conditions: twice })).toMatchObject({ place: "conditions.2" });
  expect(localErrorOf({ ...FORM, planKind: "named" })).toMatchObject({ place: "plan" });
});

test("the conflicting rule is read from its field, not from the message", () => {
  const detail = "key_pattern: rule 12 has the same key pattern and plan";
  const clash = (body: object) =>
    problemOf({ status: 409, statusText: "", headers: [], text: JSON.stringify({ detail, ...body }) });
  expect(clash({ field: "key_pattern", conflicting_rule_id: 34 })).toMatchObject({
    detail,
    field: "key_pattern",
    conflictingRuleId: 34,
  });
  expect(clash({}).conflictingRuleId).toBeUndefined();
  for (const conflicting_rule_id of [null, "34", 1.5]) {
    expect(clash({ conflicting_rule_id }).conflictingRuleId).toBeUndefined();
  }
});

test("every field of a column has a place in the form", () => {
  const shown: RuleForm = { ...FORM, algorithm: "leaky_bucket" };
  const places = FIELDS.filter((field) => field !== "refill").map((field) => placeOf(field, shown));
  expect(places).toEqual(FIELDS.filter((field) => field !== "refill"));
});

test("columns of plain text are in the form, the body, the search and the history", () => {
  expect(TEXT_COLUMNS).toContain("description");
  for (const column of TEXT_COLUMNS) {
    const old = sampleRule({ [column]: "before" });
    const changed = sampleRule({ [column]: "after" });
    expect(formOf(old)[column]).toBe("before");
    expect(bodyOf(formOf(old), old)[column]).toBe("before");
    expect(bodyOf({ ...formOf(old), [column]: "" }, old)[column]).toBeNull();
    expect(filterRules([old, changed], filterOf(new URLSearchParams("text=after")))).toEqual([changed]);
    expect(changesOf(old, changed)).toEqual([{ title: titleOf(column), old: "before", new: "after" }]);
  }
});

test("drafts are kept until they are dropped, up to a bound", () => {
  const draft = { form: FORM, base: BASE };
  saveDraft("1", draft);
  expect(draftOf("1")).toBe(draft);
  dropDraft("1");
  expect(draftOf("1")).toBeUndefined();
  for (let id = 1; id <= 9; id += 1) saveDraft(String(id), draft);
  expect(draftOf("1")).toBeUndefined();
  expect(draftOf("2")).toBe(draft);
  dropDrafts();
  for (let id = 1; id <= 9; id += 1) expect(draftOf(String(id))).toBeUndefined();
});

test("filters are in the address", () => {
  const rules = [
    BASE,
    { ...BASE, rule_id: 2, plan: null, is_active: false, scope: "ip" as const, description: "Logins" },
  ];
  const found = (address: string) =>
    filterRules(rules, filterOf(new URLSearchParams(address))).map((rule) => rule.rule_id);
  expect(found("")).toEqual([1, 2]);
  expect(found("plan=free")).toEqual([1]);
  expect(found("plans=every")).toEqual([2]);
  expect(found("scope=ip")).toEqual([2]);
  expect(found("active=on")).toEqual([1]);
  expect(found("active=off&text=logINS")).toEqual([2]);
  expect(found("text=refilling+10+per")).toEqual([1, 2]);
  expect(found("text=nothing")).toEqual([]);
  const filter = { text: "a", plan: EVERY_PLAN, scope: "ip", active: "on" };
  expect(filterOf(new URLSearchParams(paramsOf(filter)))).toEqual(filter);
});

test("pages of the table", () => {
  const rules = Array.from({ length: PAGE_ROWS + 1 }, (_, index) => ({ ...BASE, rule_id: index + 1 }));
  expect(pageOf(rules, 1)).toMatchObject({ page: 1, pages: 2 });
  expect(pageOf(rules, 2).rows.map((rule) => rule.rule_id)).toEqual([PAGE_ROWS + 1]);
  for (const page of [9, Number.NaN, -1, 1.5]) expect(pageOf(rules, page).rows.length).toBeGreaterThan(0);
  expect(pageOf([], 1)).toEqual({ rows: [], page: 1, pages: 1 });
});

test("rules of a database can be changed", () => {
  for (const source of ["sqlite:sluicegate.db", "postgres://db/sluicegate", "postgresql://db/x"]) {
    expect(isChangeable(source)).toBe(true);
  }
  for (const source of ["/etc/sluicegate/rules.toml", "rules.toml", "starter"])
    expect(isChangeable(source)).toBe(false);
});
