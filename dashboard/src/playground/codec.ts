/**
 * Encoding of the playground in an address: `#/playground?l=tb_10_1_1_c_1_own_Client+1&rate=5&s=login`.
 *
 * Addresses are untrusted: values that the form could not produce are ignored. Figures may be any number, because the
 * form accepts any; the service validates them.
 */

import {
  ALGORITHMS,
  type Algorithm,
  DEFAULT_LANE,
  LANES_MAX,
  type Lane,
  NAME_LENGTH_MAX,
  PERIOD_MAX,
  PERIOD_MIN,
  PLANS,
  RATE_MAX,
  withPlan,
} from "./lane.ts";
import { SCENARIOS, type Scenario } from "./scenarios.ts";

/** The state that a link holds. */
export interface Setup {
  readonly lanes: readonly Lane[];
  /** Requests per second of steady traffic. */
  readonly rate: number;
  /** The id of a scenario; empty for free play. */
  readonly scenario: string;
}

export const RATE_DEFAULT = 2;

export const DEFAULT_SETUP: Setup = { lanes: [DEFAULT_LANE], rate: RATE_DEFAULT, scenario: "" };

/** Longer than any encoded lane; longer texts are ignored. */
const LANE_TEXT_MAX = 200;

const CODES: Record<Algorithm, string> = {
  token_bucket: "tb",
  fixed_window: "fw",
  sliding_window: "sw",
  sliding_counter: "sc",
  leaky_bucket: "lb",
};

/** Encodes a setup. Defaults are left out. */
export function writeSetup(setup: Setup): URLSearchParams {
  const params = new URLSearchParams();
  const usual = lanesOf(SCENARIOS.find(({ id }) => id === setup.scenario)).map(writeLane);
  const lanes = setup.lanes.map(writeLane);
  const isUsual = lanes.length === usual.length && lanes.every((lane, index) => lane === usual[index]);
  if (!isUsual) for (const lane of lanes) params.append("l", lane);
  if (setup.rate !== RATE_DEFAULT) params.append("rate", String(setup.rate));
  if (setup.scenario !== "") params.append("s", setup.scenario);
  return params;
}

/** Decodes a setup. A scenario without lanes has its own; excess and invalid lanes are ignored. */
export function readSetup(params: URLSearchParams): Setup {
  const scenario = SCENARIOS.find(({ id }) => id === params.get("s"));
  const written = params.getAll("l").slice(0, LANES_MAX);
  const lanes = written.map(readLane).filter((lane) => lane !== undefined);
  return {
    lanes: lanes.length > 0 ? lanes : lanesOf(scenario),
    rate: readRate(params.get("rate")),
    scenario: scenario?.id ?? "",
  };
}

function lanesOf(scenario: Scenario | undefined): readonly Lane[] {
  return scenario?.lanes ?? DEFAULT_SETUP.lanes;
}

function writeLane(lane: Lane): string {
  const { capacity, tokens, period, cost } = lane;
  const figures = [capacity, tokens, period].map(String);
  return [CODES[lane.algorithm], ...figures, lane.refill[0], String(cost), lane.plan, lane.name].join("_");
}

function readLane(text: string): Lane | undefined {
  if (text.length > LANE_TEXT_MAX) return undefined;
  const [code, capacityText, tokensText, periodText, refillText, costText, planText, ...name] = text.split("_");
  const algorithm = ALGORITHMS.find((algorithm) => CODES[algorithm] === code);
  const plan = PLANS.find((plan) => plan === planText);
  const refill = refillText === "i" ? "interval" : "continuous";
  if (algorithm === undefined || plan === undefined) return undefined;
  const [capacity, tokens, cost] = [capacityText, tokensText, costText].map(readFigure);
  const period = readFigure(periodText);
  if (capacity === undefined || tokens === undefined || cost === undefined) return undefined;
  // Periods are selected from a list, not typed.
  if (period === undefined || period < PERIOD_MIN || period > PERIOD_MAX) return undefined;
  const lane = { algorithm, refill, capacity, tokens, period, plan, cost, name: readName(name.join("_")) } as const;
  // The figures of a plan override those in the address.
  return withPlan(lane, plan);
}

/** Limits a name to one short line. */
export function readName(text: string): string {
  const line = text.replaceAll(/[\p{Cc}\p{Cs}\u2028\u2029]/gu, " ").trim();
  return [...line].slice(0, NAME_LENGTH_MAX).join("") || DEFAULT_LANE.name;
}

/** Numbers as formatted by `String`. */
const FIGURE = /^-?\d{1,21}(\.\d{1,24})?(e[+-]\d{1,3})?$/;

/** Parses any finite number. */
function readFigure(text: string | undefined): number | undefined {
  if (text === undefined || !FIGURE.test(text)) return undefined;
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}

function readRate(text: string | null): number {
  const rate = readFigure(text ?? undefined);
  return rate !== undefined && Number.isInteger(rate) && rate >= 0 && rate <= RATE_MAX ? rate : RATE_DEFAULT;
}
