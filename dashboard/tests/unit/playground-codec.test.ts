import { expect, test } from "@playwright/test";
import { DEFAULT_SETUP, readName, readSetup, type Setup, writeSetup } from "../../src/playground/codec.ts";
import {
  ALGORITHMS,
  LANES_MAX,
  type Lane,
  laneOf,
  NAME_LENGTH_MAX,
  PERIOD_MAX,
  PERIOD_MIN,
  PLANS,
  RATE_MAX,
  REFILLS,
  withPlan,
} from "../../src/playground/lane.ts";
import { SCENARIOS } from "../../src/playground/scenarios.ts";
import { dice } from "./playground-environment.ts";

function again(setup: Setup): Setup {
  return readSetup(new URLSearchParams(writeSetup(setup).toString()));
}

test("defaults are left out", () => {
  expect(writeSetup(DEFAULT_SETUP).toString()).toBe("");
  expect(readSetup(new URLSearchParams())).toEqual(DEFAULT_SETUP);
});

test("an unchanged scenario is encoded by its name only", () => {
  for (const { id, lanes } of SCENARIOS) {
    const setup = { lanes, rate: DEFAULT_SETUP.rate, scenario: id };
    expect(writeSetup(setup).toString()).toBe(`s=${id}`);
    expect(again(setup)).toEqual(setup);
  }
});

test("a setup is decoded as it was encoded", () => {
  const roll = dice(11);
  const names = ["Client 1", "a_b_c", "50 % & more", "名前", "'; rm -rf /", "<script>", "a+b", "~*-."];
  for (let round = 0; round < 200; round++) {
    const lanes = Array.from({ length: 1 + roll(LANES_MAX) }, (): Lane => {
      const quota = { algorithm: ALGORITHMS[roll(5)]!, refill: REFILLS[roll(2)]!, capacity: 1 + roll(1_000_000) };
      const lane = laneOf(names[roll(names.length)]!, { ...quota, cost: 1 + roll(1_000_000) });
      const tokens = (1 + roll(60_000)) / 1000;
      const period = (PERIOD_MIN * 1000 + roll(PERIOD_MAX)) / 1000;
      return withPlan({ ...lane, tokens, period }, PLANS[roll(4)]!);
    });
    const scenario = roll(2) === 0 ? "" : SCENARIOS[roll(SCENARIOS.length)]!.id;
    const setup = { lanes, rate: roll(RATE_MAX + 1), scenario };
    expect(again(setup)).toEqual(setup);
  }
});

test("any typed number is decoded, even if the service rejects it", () => {
  const figures = [0, -5, 1.5, 1e-7, 0.000001234, 1e6 + 1, 65_537, 2 ** 53, 1e21, -1.2345678901234e-300];
  for (const figure of [...figures, Number.MAX_VALUE, Number.MIN_VALUE]) {
    for (const algorithm of ALGORITHMS) {
      const lane = laneOf("😀".repeat(NAME_LENGTH_MAX), { algorithm, capacity: figure, tokens: figure, cost: figure });
      const setup = { ...DEFAULT_SETUP, lanes: [lane] };
      expect(again(setup), String(figure)).toEqual(setup);
    }
  }
});

test("invalid values give the defaults", () => {
  for (const text of [
    "l=",
    "l=junk",
    "l=tb_10_1_1_c_1_own",
    "l=tb_--5_1_1_c_1_own_x",
    "l=tb__1_1_c_1_own_x",
    "l=tb_0x10_1_1_c_1_own_x",
    "l=tb_1e+999_1_1_c_1_own_x",
    `l=tb_${"9".repeat(100)}_1_1_c_1_own_x`,
    "l=tb_10_1_86401_c_1_own_x",
    "l=tb_10_1_-1_c_1_own_x",
    "l=tb_10_1_0_c_1_own_x",
    "l=tb_10_1_Infinity_c_1_own_x",
    "l=tb_10_NaN_1_c_1_own_x",
    "l=xx_10_1_1_c_1_own_x",
    "l=tb_10_1_1_c_1_gold_x",
    `l=tb_10_1_1_c_1_own_${"x".repeat(100_000)}`,
    "rate=-1",
    "rate=51",
    "rate=1.5",
    "s=nothing",
    "s=__proto__",
    "%ff=%00",
  ]) {
    const { lanes, rate, scenario } = readSetup(new URLSearchParams(text));
    expect(lanes, text).toEqual(DEFAULT_SETUP.lanes);
    expect({ rate, scenario }, text).toEqual({ rate: DEFAULT_SETUP.rate, scenario: "" });
  }
});

test("random text stays within bounds", () => {
  const roll = dice(5);
  const letters = "tbfwscli_0123456789.-eE+&=%~ownfree\u0000\ud800é";
  for (let round = 0; round < 2000; round++) {
    const junk = Array.from({ length: roll(40) }, () => letters[roll(letters.length)]).join("");
    const params = new URLSearchParams();
    for (let lane = roll(8); lane >= 0; lane--) params.append("l", roll(2) === 0 ? junk : `tb_10_1_1_c_1_own_${junk}`);
    params.append("rate", junk);
    const { lanes, rate } = readSetup(params);
    const isBounded =
      lanes.length >= 1 &&
      lanes.length <= LANES_MAX &&
      rate >= 0 &&
      rate <= RATE_MAX &&
      lanes.every(
        ({ capacity, name }) =>
          Number.isFinite(capacity) && [...name].length <= NAME_LENGTH_MAX && !/[\p{Cc}\p{Cs}]/u.test(name),
      );
    if (!isBounded) throw new Error(`${JSON.stringify(junk)} gave ${JSON.stringify(lanes)}`);
  }
});

test("the figures of a plan override those in the address", () => {
  const { lanes } = readSetup(new URLSearchParams("l=tb_9999_9999_1_c_1_free_Eve"));
  expect(lanes[0]).toMatchObject({ plan: "free", capacity: 50, tokens: 10, period: 1, name: "Eve" });
});

test("a name is one line of text", () => {
  expect(readName("  two\nlines ")).toBe("two lines");
  expect(readName("")).toBe("Client 1");
  expect(readName("😀".repeat(100))).toBe("😀".repeat(NAME_LENGTH_MAX));
});
