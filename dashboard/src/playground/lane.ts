/** A lane: one client with one quota, and what one of its requests costs. */

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
  /** Of a token bucket only. */
  readonly refill: Refill;
  /** The most that the bucket holds; plays no part in windows. */
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

/** What a change makes of a lane. Not the lane itself: what is on the screen may be a moment old. */
export type LaneChange = (lane: Lane) => Lane;

/** Lanes that are shown next to each other. */
export const LANES_MAX = 4;
export const NAME_LENGTH_MAX = 32;

/** The periods that can be chosen, come of a comparison, or be in an address, in seconds. */
export const PERIOD_MIN = 0.1;
export const PERIOD_MAX = 86_400;

/** Requests per second of steady traffic. */
export const RATE_MAX = 50;

/** The periods that are offered, in seconds. */
export const PERIODS: readonly (readonly [number, string])[] = [
  [1, "second"],
  [10, "10 seconds"],
  [60, "minute"],
  [3600, "hour"],
];

/** The quotas of the rules that a new service starts with: examples, as its operator may have changed them. */
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

/** A lane, by what is not as usual about it. */
export function laneOf(name: string, different: Partial<Omit<Lane, "name">> = {}): Lane {
  return { ...DEFAULT_LANE, ...different, name };
}

/** The lane with another plan, and the figures of that plan. */
export function withPlan(lane: Lane, plan: Plan): Lane {
  return plan === "own" ? { ...lane, plan } : { ...lane, ...PLAN_QUOTAS[plan], plan };
}

/** The lane with other figures, which then are no plan's any more. */
export function withQuota(lane: Lane, quota: Partial<Quota>): Lane {
  return { ...lane, ...quota, plan: "own" };
}

export function isWindow({ algorithm }: Quota): boolean {
  return algorithm === "fixed_window" || algorithm === "sliding_window" || algorithm === "sliding_counter";
}

export function isInterval({ algorithm, refill }: Quota): boolean {
  return algorithm === "token_bucket" && refill === "interval";
}

/** Whether tokens come back whole, and several at once, rather than bit by bit. */
export function isStepwise(quota: Quota): boolean {
  return isInterval(quota) || quota.algorithm === "fixed_window" || quota.algorithm === "sliding_window";
}

/** The most that can be spent at once. */
export function limitOf(quota: Quota): number {
  return isWindow(quota) ? quota.tokens : quota.capacity;
}

export function periodMs(quota: Quota): number {
  return quota.period * 1000;
}

export function tokensPerMs(quota: Quota): number {
  return quota.tokens / periodMs(quota);
}

/** What is sent to the service for one request. What is as it always is goes without saying. */
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

/** A period as one says it: `second`, `10 seconds`, `1.5 s`. */
export function periodName(seconds: number): string {
  return PERIODS.find(([period]) => period === seconds)?.[1] ?? `${seconds} s`;
}

/** The plan, if it is one's, and the quota, in a few words. */
export function quotaWords(lane: Lane): string {
  return lane.plan === "own" ? figureWords(lane) : `Plan ${lane.plan} (example). ${figureWords(lane)}`;
}

function figureWords(quota: Quota): string {
  const { algorithm, capacity, tokens } = quota;
  const rate = `${tokens} per ${periodName(quota.period)}`;
  if (isWindow(quota)) return `${ALGORITHM_NAMES[algorithm]}: ${rate}`;
  if (algorithm === "leaky_bucket") return `Leaky bucket: a line of ${capacity}, let out at ${rate}`;
  return `Token bucket: holds ${capacity}, ${isInterval(quota) ? "gets" : "refills"} ${rate}${isInterval(quota) ? " at once" : ""}`;
}

/**
 * One client under three algorithms with the same limit: what the bucket holds, and in the long run as much as it
 * refills. So the window is as long as the bucket takes to fill, to the millisecond.
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
