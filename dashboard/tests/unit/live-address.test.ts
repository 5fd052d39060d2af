import { expect, test } from "@playwright/test";
import type { LiveTick } from "../../src/api/types.ts";
import { byOf, liveHref, panelOf, panelOfRow } from "../../src/live/address.ts";
import { SAMPLE_REQUESTS, sampleRequests } from "../../src/live/sample.ts";
import { warningsOf } from "../../src/live/warnings.ts";
import { parseRoute } from "../../src/route.ts";

test("the address of a panel is parsed as it was written", () => {
  const opened = { ruleId: 12, subject: '<img src=x onerror="x">&rule=1', known: { endpoint: "/a?b", tenant: "t" } };
  const { view, params } = parseRoute(liveHref("rule", opened));
  expect(view).toBe("live");
  expect(byOf(params)).toBe("rule");
  expect(panelOf(params)).toEqual(opened);
});

test("an address without a rule or a subject opens nothing", () => {
  for (const query of ["", "rule=5", "subject=x", "rule=x&subject=x", "rule=0&subject=x", "rule=1.5&subject=x"]) {
    expect(panelOf(new URLSearchParams(query))).toBeUndefined();
  }
  expect(liveHref("tier")).toBe("#/live");
});

test("a placeholder cannot override parameters of the address", () => {
  const opened = panelOf(
    parseRoute(liveHref("tier", { ruleId: 1, subject: "a", known: { rule: "2", by: "rule" } })).params,
  );
  expect(opened).toEqual({ ruleId: 1, subject: "a", known: {} });
});

test("the sample is small, and of three subjects", () => {
  const requests = sampleRequests();
  expect(requests).toHaveLength(SAMPLE_REQUESTS);
  expect(new Set(requests.map(({ user_id, ip }) => user_id ?? ip)).size).toBe(3);
});

test("warnings have their consequences, the most severe first", () => {
  const well = {
    store: { kind: "redis", is_in_trouble: false },
    database: { is_in_trouble: false },
    rules_refused: null,
    audit: { noted: 1, written: 1, dropped: 0, waiting: 0 },
  } as LiveTick;
  expect(warningsOf(well, 0)).toEqual([]);
  expect(warningsOf(well, 3)[0]).toMatchObject({ what: "store", short: "Degraded" });
  const bad = {
    ...well,
    store: { ...well.store, is_in_trouble: true },
    database: { is_in_trouble: true },
    rules_refused: "rule 3: period: is missing",
    audit: { noted: 2, written: 1, dropped: 1, waiting: 0 },
  };
  const warnings = warningsOf(bad, 0);
  expect(warnings.map(({ what }) => what)).toEqual(["store", "rules", "database", "audit"]);
  expect(warnings[1]?.means).toContain("rule 3: period: is missing");
});

test("a row opens a panel with the known values of other placeholders", () => {
  const row = { rule_id: 5, subject: "42", endpoint: "/a", user_id: "42", ip_address: "203.0.113.9" };
  const opened = (key_pattern: string, more = {}) => panelOfRow({ ...row, key_pattern, ...more });
  expect(opened("{user_id}:{endpoint}:{ip}")).toEqual({
    ruleId: 5,
    subject: "42",
    known: { endpoint: "/a", ip: "203.0.113.9" },
  });
  expect(opened("{user_id}:{endpoint}:{tenant}", { endpoint: null }).known).toEqual({});
  // A network does not identify the bucket of an address.
  expect(opened("{user_id}:{ip}", { ip_address: "203.0.113.0/24" }).known).toEqual({});
  expect(opened("{user_id}:{constructor}:{__proto__}").known).toEqual({});
});
