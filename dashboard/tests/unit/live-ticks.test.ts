import { expect, test } from "@playwright/test";
import type { LiveRule, LiveTick } from "../../src/api/types.ts";
import {
  formatAgo,
  formatMicros,
  formatMicrosBound,
  formatRate,
  formatShare,
  latencyOf,
  requestsNow,
  rulesNow,
} from "../../src/live/figures.ts";
import { byRule, byTier, COLOURS, coloursOf, SECONDS, stacked } from "../../src/live/series.ts";
import { HISTORY_S, hasTraffic, type LiveData, NO_DATA, TICKS_MAX, withEvent } from "../../src/live/ticks.ts";

const START = Date.parse("2026-11-15T21:40:00.000Z");
const NOTHING = { granted: 0, denied: 0, never: 0 };

function tickAt(second: number, rules: readonly Partial<LiveRule>[] = [], more: Partial<LiveTick> = {}): LiveTick {
  const user = { scope: "user" as const, granted: 0, denied: 0, never: 0 };
  for (const { granted = 0, denied = 0, never = 0 } of rules) {
    user.granted += granted;
    user.denied += denied;
    user.never += never;
  }
  return {
    now: new Date(START + second * 1000).toISOString(),
    seconds: 1,
    requests: { allowed: 0, denied: 0 },
    tiers: [{ scope: "global", ...NOTHING }, user],
    rules: rules.map((rule) => ({
      rule_id: 1,
      key_pattern: "user:{user_id}",
      scope: "user",
      plan: null,
      mode: "enforce",
      ...NOTHING,
      ...rule,
    })),
    other_rules: NOTHING,
    take: NOTHING,
    limited: [],
    shared: [],
    latency: { count: 0, p50_us: null, p99_us: null },
    degraded: 0,
    store: { kind: "memory", is_in_trouble: false },
    database: { is_in_trouble: false },
    rules_refused: null,
    audit: { noted: 0, written: 0, dropped: 0, waiting: 0 },
    ...more,
  };
}

function received(event: "tick" | "history", data: unknown, known: LiveData = NO_DATA): LiveData {
  return withEvent(known, { event, data: JSON.stringify(data) });
}

function ticked(...ticks: LiveTick[]): LiveData {
  return ticks.reduce((known, tick) => received("tick", tick, known), NO_DATA);
}

test("the history is bounded to two minutes", () => {
  let known = NO_DATA;
  for (let second = 0; second < 10 * HISTORY_S; second += 1) known = received("tick", tickAt(second), known);
  expect(known.history).toHaveLength(HISTORY_S);
  for (let step = 0; step < 10 * TICKS_MAX; step += 1) known = received("tick", tickAt(2000 + step / 100), known);
  expect(known.history).toHaveLength(TICKS_MAX);
  expect(known.last?.now).toBe(new Date(START + 2000_000 + 10 * TICKS_MAX * 10 - 10).toISOString());
});

test("limited subjects are kept of the last tick only", () => {
  const { history } = ticked(tickAt(0));
  expect(history[0]).not.toHaveProperty("limited");
  expect(history[0]).not.toHaveProperty("shared");
});

test("a history replaces its time range, and nothing before", () => {
  const seen = ticked(tickAt(0, [{ granted: 1 }]), tickAt(1), tickAt(2));
  const known = received(
    "history",
    { every_ms: 1000, ticks: [tickAt(1, [{ granted: 7 }]), tickAt(2), tickAt(3)] },
    seen,
  );
  expect(known.history.map(({ at }) => (at - START) / 1000)).toEqual([0, 1, 2, 3]);
  expect(known.history[1]?.rules[0]?.granted).toBe(7);
  expect(received("history", { every_ms: 1000, ticks: [] }, seen).history).toHaveLength(3);
});

test("a clock set back drops future ticks", () => {
  const { history } = ticked(tickAt(100), tickAt(101), tickAt(50));
  expect(history.map(({ at }) => (at - START) / 1000)).toEqual([50]);
});

test("invalid events are ignored", () => {
  const known = ticked(tickAt(0));
  for (const data of ["", "{", '{"now":"soon"}', "null"]) {
    expect(withEvent(known, { event: "tick", data })).toBe(known);
  }
  expect(withEvent(known, { event: "news", data: "{}" })).toBe(known);
});

test("any decision counts as traffic", () => {
  expect(hasTraffic(ticked(tickAt(0)).history)).toBe(false);
  expect(hasTraffic(ticked(tickAt(0, [{ denied: 1 }]), tickAt(1)).history)).toBe(true);
  expect(hasTraffic(ticked(tickAt(0, [], { take: { ...NOTHING, granted: 1 } })).history)).toBe(true);
});

test("requests are of the last five seconds", () => {
  const requests = { allowed: 8, denied: 2 };
  const busy = [0, 1, 2, 3, 4, 5, 6].map((second) => tickAt(second, [], { requests }));
  expect(requestsNow(ticked(...busy).history)).toMatchObject({ allowed: 8, denied: 2, shareDenied: 0.2 });
  const idle = [7, 8, 9, 10, 11].map((second) => tickAt(second));
  const nothing = { allowed: 0, denied: 0, shareDenied: undefined };
  expect(requestsNow(ticked(...busy, ...idle).history)).toMatchObject(nothing);
  expect(requestsNow([])).toMatchObject(nothing);
});

test("a longer tick has a lower rate", () => {
  const { history } = ticked(tickAt(2, [], { seconds: 2, requests: { allowed: 10, denied: 0 } }));
  expect(requestsNow(history).allowed).toBe(5);
});

test("latency is the latest known", () => {
  const latency = { count: 10, p50_us: 5, p99_us: 25 };
  const { history } = ticked(tickAt(0, [], { latency }), tickAt(1));
  expect(latencyOf(history)).toEqual(latency);
  expect(latencyOf(ticked(tickAt(0, [], { latency }), tickAt(10)).history)).toBeUndefined();
});

test("rules stay for two minutes, busiest first, in their latest state", () => {
  const { history } = ticked(
    tickAt(0, [
      { rule_id: 2, granted: 5, mode: "shadow" },
      { rule_id: 3, granted: 9 },
    ]),
    tickAt(60, [{ rule_id: 2, granted: 3, denied: 3 }]),
  );
  const [first, second] = rulesNow(history);
  expect(first).toMatchObject({ rule: { rule_id: 2, mode: "enforce" }, allowed: 3, denied: 3, shareDenied: 0.5 });
  expect(second).toMatchObject({ rule: { rule_id: 3 }, allowed: 0, denied: 0, shareDenied: undefined });
});

test("charts by tier have every scope, and gaps for missing ticks", () => {
  const { history } = ticked(tickAt(0, [{ granted: 2 }]), tickAt(3.1, [{ granted: 4, denied: 1, never: 1 }]));
  const groups = byTier(history);
  expect(groups.map(({ key }) => key)).toEqual(["global", "ip", "endpoint", "user", "custom"]);
  const user = groups[3]!;
  expect(user.allowed).toHaveLength(SECONDS.length);
  expect(user.allowed.slice(-5)).toEqual([null, 2, null, null, 4]);
  expect(user.denied.slice(-5)).toEqual([null, 0, null, null, 2]);
});

/** The last four rates of a rule that grants 100 per second, with ticks at these times. */
function steadyAt(...seconds: number[]): (number | null)[] {
  const ticks = seconds.map((second, at) => {
    const took = at === 0 ? 1 : second - seconds[at - 1]!;
    return tickAt(second, [{ granted: 100 * took }], { seconds: took });
  });
  const [group] = byRule(ticked(...ticks).history, new Map([[1, 0]]));
  return group!.allowed.slice(-4).map((rate) => (rate === null ? null : Math.round(rate)));
}

test("two ticks in one slot do not double the rate", () => {
  // The second and the third tick are both nearest to two seconds before the last.
  expect(steadyAt(0, 0.6, 1.4, 2, 3)).toEqual([100, 100, 100, 100]);
});

test("a gap between consecutive ticks is filled, a longer one is not", () => {
  expect(steadyAt(0, 1.4, 3)).toEqual([100, 100, 100, 100]);
  expect(steadyAt(0, 1, 3)).toEqual([100, 100, null, 100]);
});

test("buckets without a rule are a group of their own, if there are any", () => {
  const { history } = ticked(tickAt(0, [], { take: { granted: 3, denied: 0, never: 0 } }));
  expect(byTier(history).at(-1)).toMatchObject({ key: "take" });
});

test("charts by rule have eight rules, and the sum of the others", () => {
  const rules = Array.from({ length: 12 }, (_, at) => ({ rule_id: at + 1, granted: at + 1 }));
  const { history } = ticked(tickAt(0, rules, { other_rules: { granted: 100, denied: 7, never: 0 } }));
  const colours = coloursOf(new Map(), rules.map(({ rule_id }) => rule_id).reverse());
  const groups = byRule(history, colours);
  expect(groups).toHaveLength(COLOURS + 1);
  expect(groups.slice(0, -1).map(({ key }) => key)).toEqual(["5", "6", "7", "8", "9", "10", "11", "12"]);
  expect(groups.at(-1)?.allowed.at(-1)).toBe(1 + 2 + 3 + 4 + 100);
  expect(groups.at(-1)?.denied.at(-1)).toBe(7);
});

test("a long pattern is truncated between characters in the legend", () => {
  const { history } = ticked(tickAt(0, [{ key_pattern: "\u{1f600}".repeat(100), granted: 1 }]));
  const name = byRule(history, new Map([[1, 0]]))[0]!.name;
  expect(name).toBe(`1 ${"\u{1f600}".repeat(39)}…`);
});

test("a rule keeps its colour while it is shown", () => {
  const before = coloursOf(new Map(), [1, 2, 3]);
  expect([...before]).toEqual([
    [1, 0],
    [2, 1],
    [3, 2],
  ]);
  const after = coloursOf(before, [9, 3, 2]);
  expect(after.get(3)).toBe(2);
  expect(after.get(2)).toBe(1);
  expect(after.get(9)).toBe(0);
  expect(
    coloursOf(
      before,
      Array.from({ length: 30 }, (_, at) => at),
    ).size,
  ).toBe(COLOURS);
});

test("a stack is sums, with the same gaps", () => {
  expect(
    stacked([
      [1, null, 0],
      [2, null, 5],
    ]),
  ).toEqual([
    [1, null, 0],
    [3, null, 5],
  ]);
});

test("figures are short", () => {
  expect([0, 0.01, 0.44, 9.96, 12.4, 3400].map(formatRate)).toEqual(["0", "< 0.1", "0.4", "10", "12", "3,400"]);
  expect([undefined, 0, 0.0001, 0.034, 0.42, 0.9999, 1, 2.504].map(formatShare)).toEqual([
    "–",
    "0 %",
    "< 0.1 %",
    "3.4 %",
    "42 %",
    "> 99.9 %",
    "100 %",
    "250 %",
  ]);
  expect([null, 5, 2500, 1_000_000].map(formatMicros)).toEqual(["–", "5 µs", "2.5 ms", "1 s"]);
  expect([null, 25].map(formatMicrosBound)).toEqual(["–", "≤ 25 µs"]);
  expect(formatAgo("2026-11-15T21:40:00.000Z", "2026-11-15T21:40:12.300Z")).toBe("12 s ago");
  expect(formatAgo("2026-11-15T21:40:00.000Z", "2026-11-15T21:40:00.000Z")).toBe("now");
});
