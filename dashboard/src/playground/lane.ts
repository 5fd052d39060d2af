/** Lane: a client with a quota and a cost per request. */

export const ALGORITHMS = [
  "token_bucket",
  "fixed_window",
  "sliding_window",
  "sliding_counter",
  "leaky_bucket",
] as const;
export type Algorithm = (typeof ALGORITHMS)[number];

export const ALGORITHM_NAMES: Record<Algorithm, string> = {
  token_bucket: "Token bucket",
  fixed_window: "Fixed window",
  sliding_window: "Sliding window",
  sliding_counter: "Sliding counter",
  leaky_bucket: "Leaky bucket",
};

export const REFILLS = ["continuous", "interval"] as const;
export type Refill = (typeof REFILLS)[number];

export const PLANS = ["own", "free", "pro", "enterprise"] as const;
export type Plan = (typeof PLANS)[number];

export interface Quota {
  readonly algorithm: Algorithm;
  /** For token buckets only. */
  readonly refill: Refill;
  /** The most tokens that the bucket holds; unused for windows. */
  readonly capacity: number;
  readonly tokens: number;
  /** In seconds. */
  readonly period: number;
}

export interface Lane extends Quota {
  readonly name: string;
  readonly plan: Plan;
  readonly cost: number;
}

/** A change of a lane. A function, because the lane on the screen may be outdated. */
export type LaneChange = (lane: Lane) => Lane;

/** The most lanes. */
export const LANES_MAX = 4;
export const NAME_LENGTH_MAX = 32;

/** Bounds of periods in the form, in a comparison and in an address, in seconds. */
export const PERIOD_MIN = 0.1;
export const PERIOD_MAX = 86_400;

/** The highest rate of steady traffic, per second. */
export const RATE_MAX = 50;

/** The periods in the form, in seconds. */
export const PERIODS: readonly (readonly [number, string])[] = [
  [1, "second"],
  [10, "10 seconds"],
  [60, "minute"],
  [3600, "hour"],
];

/** Quotas of the starter rules. Examples: the operator may have changed the rules. */
export const PLAN_QUOTAS: Record<Exclude<Plan, "own">, Quota> = {
  free: { algorithm: "token_bucket", refill: "continuous", capacity: 50, tokens: 10, period: 1 },
  pro: { algorithm: "token_bucket", refill: "continuous", capacity: 500, tokens: 100, period: 1 },
  enterprise: { algorithm: "token_bucket", refill: "continuous", capacity: 5000, tokens: 1000, period: 1 },
};

export const DEFAULT_LANE: Lane = {
  name: "Client 1",
  plan: "own",
  algorithm: "token_bucket",
  refill: "continuous",
  capacity: 10,
  tokens: 1,
  period: 1,
  cost: 1,
};

/** A lane that differs from the default in some fields. */
export function laneOf(name: string, different: Partial<Omit<Lane, "name">> = {}): Lane {
  return { ...DEFAULT_LANE, ...different, name };
}

/** The lane with another plan and its figures. */
export function withPlan(lane: Lane, plan: Plan): Lane {
  return plan === "own" ? { ...lane, plan } : { ...lane, ...PLAN_QUOTAS[plan], plan };
}

/** The lane with other figures, and so without a plan. */
export function withQuota(lane: Lane, quota: Partial<Quota>): Lane {
  return { ...lane, ...quota, plan: "own" };
}

export function isWindow({ algorithm }: Quota): boolean {
  return algorithm === "fixed_window" || algorithm === "sliding_window" || algorithm === "sliding_counter";
}

export function isInterval({ algorithm, refill }: Quota): boolean {
  return algorithm === "token_bucket" && refill === "interval";
}

/** Returns whether tokens come back in steps rather than continuously. */
export function isStepwise(quota: Quota): boolean {
  return isInterval(quota) || quota.algorithm === "fixed_window" || quota.algorithm === "sliding_window";
}

/** The most tokens that can be spent at once. */
export function limitOf(quota: Quota): number {
  return isWindow(quota) ? quota.tokens : quota.capacity;
}

export function periodMs(quota: Quota): number {
  return quota.period * 1000;
}

export function tokensPerMs(quota: Quota): number {
  return quota.tokens / periodMs(quota);
}

/** Body of a request. Defaults are left out. */
export interface TakeBody {
  readonly key: string;
  readonly algorithm?: Algorithm;
  readonly capacity?: number;
  readonly refill_rate: number;
  readonly refill_interval: number;
  readonly refill?: Refill;
  readonly cost: number;
}

export function takeBody(key: string, quota: Quota, cost: number): TakeBody {
  return {
    key,
    ...(quota.algorithm === "token_bucket" ? {} : { algorithm: quota.algorithm }),
    ...(isWindow(quota) ? {} : { capacity: quota.capacity }),
    refill_rate: quota.tokens,
    refill_interval: quota.period,
    ...(isInterval(quota) ? { refill: quota.refill } : {}),
    cost,
  };
}

/** Text of a period: `second`, `10 seconds`, `1.5 s`. */
export function periodName(seconds: number): string {
  return PERIODS.find(([period]) => period === seconds)?.[1] ?? `${seconds} s`;
}

/** Short text of the plan, if any, and of the quota. */
export function quotaWords(lane: Lane): string {
  return lane.plan === "own" ? figureWords(lane) : `Plan ${lane.plan} (example). ${figureWords(lane)}`;
}

function figureWords(quota: Quota): string {
  const { algorithm, capacity, tokens } = quota;
  const rate = `${tokens} per ${periodName(quota.period)}`;
  if (isWindow(quota)) return `${ALGORITHM_NAMES[algorithm]}: ${rate}`;
  if (algorithm === "leaky_bucket") return `Leaky bucket: queue of ${capacity}, drained at ${rate}`;
  return `Token bucket: holds ${capacity}, refills ${rate}${isInterval(quota) ? " at once" : ""}`;
}

/**
 * Three lanes with different algorithms and the same limit and long-term rate: the window is as long as the bucket
 * takes to fill, to the millisecond.
 */
export function comparison(lane: Lane): Lane[] {
  const limit = Math.max(1, Math.round(limitOf(lane)));
  const filling = isWindow(lane) ? lane.period : (limit * lane.period) / lane.tokens;
  const period = Math.min(Math.max(Math.round(filling * 1000) / 1000, PERIOD_MIN), PERIOD_MAX);
  const same = { capacity: limit, tokens: limit, period, cost: lane.cost } as const;
  return (["token_bucket", "fixed_window", "sliding_window"] as const).map((algorithm) =>
    laneOf(ALGORITHM_NAMES[algorithm], { ...same, algorithm }),
  );
}
