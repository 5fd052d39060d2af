import { expect, test } from "@playwright/test";
import type { Violation } from "../../src/api/types.ts";
import { countRows, EXPORT_MAX, exportAll, type Page } from "../../src/ui/export-pages.ts";
import { inputOf, timeOf } from "../../src/ui/search.ts";
import { paramsOf, queryOf, searchOf, topQueryOf } from "../../src/violations/search.ts";
import { subjectOf } from "../../src/violations/subject.ts";
import { axisOf, SLOTS_MAX, sumOf, timelineOf } from "../../src/violations/timeline.ts";
import { timesOf } from "../../src/violations/times.ts";

const NOW = Date.parse("2026-08-01T12:00:00Z");

test("a search is in the address and restored from it", () => {
  const text = "user_id=%3Cb%3E&endpoint=%2Fa%3Fb%26c&rule_id=5&mode=shadow&from=2026-08-01T11%3A00%3A00Z";
  const search = searchOf(new URLSearchParams(text));
  expect(search.user_id).toBe("<b>");
  expect(searchOf(new URLSearchParams(paramsOf(search).toString()))).toEqual(search);
});

test("a relative time range ends at the time of the search, and excludes others", () => {
  const search = searchOf(new URLSearchParams("last=1h&from=2020-01-01T00:00:00Z&user_id=42"));
  expect(search.from).toBe("");
  expect(queryOf(search, NOW)).toEqual({ user_id: "42", from: "2026-08-01T11:00:00.000Z" });
  expect(queryOf(searchOf(new URLSearchParams("last=1y")), NOW)).toEqual({});
});

test("surrounding white space is ignored", () => {
  expect(queryOf(searchOf(new URLSearchParams({ ip: " 203.0.113.9 " })), NOW)).toEqual({ ip: "203.0.113.9" });
});

test("top offenders are filtered by rule, mode and time only", () => {
  const query = {
    user_id: "1",
    ip: "::1",
    endpoint: "/",
    bucket_key: "x",
    rule_id: "5",
    mode: "shadow",
    from: "a",
    to: "b",
  };
  expect(topQueryOf(query)).toEqual({ rule_id: "5", mode: "shadow", from: "a", to: "b" });
  expect(topQueryOf({ user_id: "1" })).toEqual({});
});

test("times are read and written in UTC", () => {
  expect(inputOf("2026-08-01T14:00:00+02:00")).toBe("2026-08-01T12:00:00");
  expect(inputOf("yesterday")).toBe("");
  expect(timeOf("2026-08-01T12:00")).toBe("2026-08-01T12:00:00Z");
  expect(timeOf("")).toBe("");
});

function violation(of: Partial<Violation>): Violation {
  return {
    violation_id: 1,
    bucket_key: "user:42",
    user_id: "42",
    ip_address: "203.0.113.9",
    endpoint: "/",
    method: "GET",
    requested_at: "2026-08-01T12:00:00Z",
    last_at: "2026-08-01T12:00:30Z",
    tokens_at_time: 0,
    rule_id: 1,
    count: 1,
    mode: "enforce",
    ...of,
  };
}

test("the subject is the user, else the address, else the value of the first placeholder", () => {
  expect(subjectOf("api:{endpoint}:{user_id}", violation({}))).toBe("42");
  expect(subjectOf("login:{ip}", violation({}))).toBe("203.0.113.9");
  expect(subjectOf("t:{tenant}", violation({ bucket_key: "t:a:b" }))).toBe("a:b");
  expect(subjectOf("t:{tenant}:x", violation({ bucket_key: "t:acme:x" }))).toBe("acme");
  expect(subjectOf("global", violation({ bucket_key: "global" }))).toBe("global");
});

test("a subject that the bucket's key does not determine is undefined", () => {
  expect(subjectOf("user:{user_id}", violation({ user_id: null }))).toBeUndefined();
  expect(subjectOf("{a}:{b}", violation({ bucket_key: "x:y:z" }))).toBeUndefined();
  expect(subjectOf("{a}:{a}", violation({ bucket_key: "x:x" }))).toBeUndefined();
  expect(subjectOf("other:{tenant}", violation({ bucket_key: "t:acme" }))).toBeUndefined();
  expect(subjectOf("aa{t}aa", violation({ bucket_key: "aaa" }))).toBeUndefined();
});

test("a pseudonym is not a subject", () => {
  const altered = ["h:0123456789abcdefghij-_", `${"x".repeat(233)}~0123456789abcdefghij-_`];
  for (const user_id of altered) expect(subjectOf("user:{user_id}", violation({ user_id }))).toBeUndefined();
  for (const ip_address of ["203.0.113.0/24", "2001:db8:1::/48"]) {
    expect(subjectOf("login:{ip}", violation({ ip_address }))).toBeUndefined();
  }
  expect(subjectOf("user:{user_id}", violation({ user_id: "a/24" }))).toBe("a/24");
  const cut = `${"t".repeat(489)}~0123456789abcdefghij-_`;
  expect(subjectOf(`${"t".repeat(480)}{tenant}`, violation({ bucket_key: cut }))).toBeUndefined();
});

test("denials are summed by slot, shadow mode apart", () => {
  const { per, starts, enforced, shadow } = timelineOf(
    [
      violation({ requested_at: "2026-08-01T12:00:59Z", count: 4 }),
      violation({ requested_at: "2026-08-01T12:00:01Z", count: 3 }),
      violation({ requested_at: "2026-08-01T12:00:02Z", count: 2, mode: "shadow" }),
      violation({ requested_at: "2026-08-01T11:58:00Z", count: 1 }),
    ],
    {},
  );
  expect(per).toBe("minute");
  expect(enforced.slice(-3)).toEqual([1, 0, 7]);
  expect(shadow.slice(-3)).toEqual([0, 0, 2]);
  expect(starts.at(-1)).toBe(NOW / 1000);
  // A single bar does not fill the chart.
  expect(starts).toHaveLength(15);
});

test("the whole range is drawn in a bounded number of slots", () => {
  for (const seconds of [900, 3600, 86_400, 30 * 86_400, 400 * 86_400, 30 * 365 * 86_400]) {
    const to = NOW / 1000;
    const timeline = timelineOf([violation({})], { from: to - seconds, to });
    expect(timeline.starts.length).toBeLessThanOrEqual(SLOTS_MAX);
    expect(timeline.starts[0]).toBeLessThanOrEqual(to - seconds);
    expect(timeline.starts.at(-1)! + timeline.seconds).toBeGreaterThan(to);
    expect(sumOf(timeline.enforced)).toBe(1);
  }
});

test("an axis has the date where it changes", () => {
  const at = (text: string) => Date.parse(text) / 1000;
  expect(axisOf([at("2026-07-31T22:00:00Z"), at("2026-08-01T00:00:00Z"), at("2026-08-01T02:00:00Z")])).toEqual([
    "22:00\n07-31",
    "00:00\n08-01",
    "02:00",
  ]);
  expect(axisOf([at("2026-08-01T00:00:00Z"), at("2026-08-02T00:00:00Z")])).toEqual(["2026-08-01", "2026-08-02"]);
});

test("line breaks inside values do not count as rows of CSV", () => {
  expect(countRows("")).toBe(0);
  expect(countRows("a,b\r\n")).toBe(1);
  expect(countRows('a,b\r\n1,"x\r\ny ""z"""\r\n2,c')).toBe(3);
});

function pages(...all: Page[]): (after: string | undefined) => Promise<Page> {
  return async (after) => all[after === undefined ? 0 : Number(after)]!;
}

test("an export has every page, and one header", async () => {
  const seen: number[] = [];
  const fetch = pages({ text: "h\r\na\r\n", rows: 1, next: "1" }, { text: "h\r\nb\r\nc\r\n", rows: 2, next: null });
  const { parts, rows, isAll } = await exportAll("csv", "violations", fetch, (rows) => seen.push(rows));
  expect(parts.join("")).toBe("h\r\na\r\nb\r\nc\r\n");
  expect([rows, isAll]).toEqual([3, true]);
  expect(seen).toEqual([1, 3]);
});

test("an export as JSON can be parsed", async () => {
  const some = pages({ text: '{"a":1},\n{"a":2}', rows: 2, next: "1" }, { text: '{"a":3}', rows: 1, next: null });
  const { parts } = await exportAll("json", "violations", some, () => {});
  expect(JSON.parse(parts.join(""))).toEqual({ violations: [{ a: 1 }, { a: 2 }, { a: 3 }] });
  const none = await exportAll("json", "violations", pages({ text: "", rows: 0, next: null }), () => {});
  expect(JSON.parse(none.parts.join(""))).toEqual({ violations: [] });
});

test("an export ends at its bound, and reports that there is more", async () => {
  let parameters = 0;
  const endless = async () => {
    parameters += 1;
    return { text: "h\n", rows: 1000, next: "0" };
  };
  const { rows, isAll } = await exportAll("csv", "violations", endless, () => {});
  expect([rows, isAll, parameters]).toEqual([EXPORT_MAX, false, EXPORT_MAX / 1000]);
});

test("times do not repeat shared parts", () => {
  const times = (first: string, last: string) =>
    timesOf({ requested_at: `2026-08-01T${first}Z`, last_at: `2026-08-0${last}Z` });
  expect(times("12:00:07.1", "1T12:00:07.9")).toBe("12:00:07");
  expect(times("12:00:07.1", "1T12:00:31.9")).toBe("12:00:07 – :31");
  expect(times("12:00:59.1", "1T12:01:02.9")).toBe("12:00:59 – 12:01:02");
  expect(times("23:59:59.1", "2T00:00:02.9")).toBe("23:59:59 – 2026-08-02 00:00:02");
});
