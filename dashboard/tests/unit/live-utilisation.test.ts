import { expect, test } from "@playwright/test";
import type { LiveRule, SharedTier } from "../../src/api/types.ts";
import type { PastTick } from "../../src/live/ticks.ts";
import { RATE_MIN, utilisationOf } from "../../src/live/utilisation.ts";

const NOTHING = { granted: 0, denied: 0, never: 0 };
const TIER: SharedTier = {
  rule_id: 8,
  key_pattern: "global",
  scope: "global",
  plan: null,
  mode: "enforce",
  limit: 200,
  remaining: 191,
  utilisation: 0.045,
  rate_per_second: 100,
};

/** Ticks with these grants of the rule; undefined if the tick reports it only as part of a sum. */
function seconds(granted: readonly (number | undefined)[], others = 0): PastTick[] {
  const about = { key_pattern: "global", scope: "global", plan: null, mode: "enforce" } as const;
  return granted.map((count, second) => {
    const rule: LiveRule = { rule_id: 8, ...about, ...NOTHING, granted: count ?? 0 };
    const rules = count === undefined ? [] : [{ ...rule, rule_id: 7, granted: 999 }, rule];
    const past: Partial<PastTick> = {
      at: second * 1000,
      seconds: 1,
      rules,
      other_rules: { ...NOTHING, granted: others },
    };
    return past as PastTick;
  });
}

test("the rate is shown if more of it is used than of the tokens", () => {
  const use = utilisationOf(TIER, seconds([0, 0, 90, 80, 90, 80, 85]));
  expect(use).toEqual({ share: 0.85, of: "rate", rate: { granted: 85, refill: 100, share: 0.85 } });
});

test("the tokens are shown if more of them are used, and a burst may exceed the rate", () => {
  const emptied = { ...TIER, remaining: 0, utilisation: 1 };
  expect(utilisationOf(emptied, seconds([80]))).toMatchObject({ share: 1, of: "tokens" });
  expect(utilisationOf(TIER, seconds([300]))).toMatchObject({ share: 3, of: "rate" });
  expect(utilisationOf({ ...TIER, utilisation: 0 }, seconds([0]))).toMatchObject({ share: 0, of: "tokens" });
});

test("a missing rule granted nothing, unless it may be part of a sum", () => {
  expect(utilisationOf(TIER, seconds([undefined])).rate).toMatchObject({ granted: 0, share: 0 });
  expect(utilisationOf(TIER, seconds([undefined], 5)).rate).toBeUndefined();
});

test("without data the utilisation is unknown", () => {
  expect(utilisationOf(TIER, []).rate).toBeUndefined();
  expect(utilisationOf({ ...TIER, rate_per_second: RATE_MIN / 2 }, seconds([1]))).toMatchObject({
    share: 0.045,
    of: "tokens",
    rate: undefined,
  });
  const unknown = { ...TIER, limit: null, remaining: null, utilisation: null };
  expect(utilisationOf(unknown, seconds([0]))).toMatchObject({ share: null });
  expect(utilisationOf(unknown, seconds([50]))).toMatchObject({ share: 0.5, of: "rate" });
});
