/** Test environment of the playground: a manual clock, and a service with exact arithmetic. */

import type { Answer } from "../../src/api/client.ts";
import type { TakeBody } from "../../src/playground/lane.ts";
import type { Environment } from "../../src/playground/model.ts";

interface Sleeper {
  readonly until: number;
  readonly wake: () => void;
}

export class FakeWorld implements Environment {
  /** Milliseconds, on all clocks. */
  time: number;
  readonly requests: TakeBody[] = [];
  isDown = false;
  /** Status of answers to a client that is not a caller. */
  refusal: number | undefined;
  /** Milliseconds that an answer takes. */
  latency = 0;
  private sleepers: Sleeper[] = [];
  private readonly service = new FakeService();

  constructor(time = 1_000_000_000) {
    this.time = time;
  }

  now(): number {
    return this.time;
  }

  timeOfDay(): number {
    return this.time;
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((done) => {
      if (signal.aborted) return done();
      const wake = () => {
        signal.removeEventListener("abort", wake);
        done();
      };
      signal.addEventListener("abort", wake);
      this.sleepers.push({ until: this.time + ms, wake });
    });
  }

  async take(body: TakeBody): Promise<Answer> {
    this.requests.push(body);
    if (this.isDown) throw new Error("down");
    if (this.refusal !== undefined) return { status: this.refusal, statusText: "", headers: [], text: "{}" };
    const answer = this.service.take(body, BigInt(Math.round(this.time * 1000)));
    if (this.latency > 0) await this.sleep(this.latency, new AbortController().signal);
    return answer;
  }

  /** Advances the clock and runs everything that is due. */
  async advance(ms: number): Promise<void> {
    const end = this.time + ms;
    await settle();
    for (;;) {
      const next = this.sleepers.reduce<Sleeper | undefined>(
        (first, other) => (first === undefined || other.until < first.until ? other : first),
        undefined,
      );
      if (next === undefined || next.until > end) break;
      this.sleepers = this.sleepers.filter((sleeper) => sleeper !== next);
      this.time = Math.max(this.time, next.until);
      next.wake();
      await settle();
    }
    this.time = end;
    await settle();
  }
}

/** Runs all pending microtasks. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}

interface Decided {
  readonly allowed: boolean;
  readonly remaining: bigint;
  /** In microseconds; undefined for never. */
  readonly retryAfter: bigint | undefined;
  readonly resetAfter: bigint;
}

/** Token bucket, fixed window and sliding window in whole microseconds, like the service. */
export class FakeService {
  private readonly fullAt = new Map<string, bigint>();
  private readonly spent = new Map<string, { at: bigint; cost: bigint }[]>();

  take(body: TakeBody, now: bigint): Answer {
    if (body.capacity !== undefined && body.capacity < 1) {
      const problem = { status: 400, detail: "capacity: a capacity of zero grants nothing", field: "capacity" };
      return { status: 400, statusText: "Bad Request", headers: [], text: JSON.stringify(problem) };
    }
    const limit = BigInt(body.capacity ?? body.refill_rate);
    const period = BigInt(Math.round(body.refill_interval * 1e6));
    const cost = BigInt(body.cost);
    const decided =
      body.algorithm === undefined
        ? this.bucket(body.key, limit, BigInt(body.refill_rate), period, cost, now)
        : this.window(body.key, body.algorithm === "fixed_window", limit, period, cost, now);
    const text = JSON.stringify({
      allowed: decided.allowed,
      limit: Number(limit),
      remaining: Number(decided.remaining),
      retry_after_ms: decided.retryAfter === undefined ? null : Number(up(decided.retryAfter, 1000n)),
      reset_after_ms: Number(up(decided.resetAfter, 1000n)),
    });
    return { status: decided.allowed ? 200 : 429, statusText: "", headers: [], text };
  }

  private bucket(key: string, limit: bigint, n: bigint, p: bigint, cost: bigint, now: bigint): Decided {
    const t = now * n;
    const debt = least(most((this.fullAt.get(key) ?? t) - t, 0n), limit * p);
    const after = debt + cost * p;
    const allowed = after <= limit * p;
    if (allowed && cost > 0n) this.fullAt.set(key, t + after);
    const left = allowed ? after : debt;
    return {
      allowed,
      remaining: (limit * p - left) / p,
      retryAfter: allowed ? 0n : cost > limit ? undefined : up(after - limit * p, n),
      resetAfter: up(left, n),
    };
  }

  private window(key: string, isFixed: boolean, limit: bigint, p: bigint, cost: bigint, now: bigint): Decided {
    const start = isFixed ? now - (now % p) : now - p + 1n;
    const counted = (this.spent.get(key) ?? []).filter(({ at }) => at >= start);
    const used = counted.reduce((sum, { cost }) => sum + cost, 0n);
    const allowed = used + cost <= limit;
    if (allowed && cost > 0n) counted.push({ at: now, cost });
    this.spent.set(key, counted);
    const left = limit - used - (allowed ? cost : 0n);
    const last = counted.at(-1)?.at;
    const resetAfter = last === undefined ? 0n : (isFixed ? start : last) + p - now;
    return { allowed, remaining: left, retryAfter: allowed ? 0n : resetAfter, resetAfter };
  }
}

function up(value: bigint, by: bigint): bigint {
  return (value + by - 1n) / by;
}

function least(one: bigint, other: bigint): bigint {
  return one < other ? one : other;
}

function most(one: bigint, other: bigint): bigint {
  return one > other ? one : other;
}

/** Deterministic pseudo-random numbers. */
export function dice(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
