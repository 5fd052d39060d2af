/** State of a lane and of its bucket. */

import type { Problem } from "../api/client.ts";
import type { TakeAnswer } from "../api/types.ts";
import type { Exchange } from "./exchange.ts";
import { History } from "./history.ts";
import { type Lane, takeBody } from "./lane.ts";
import { edgeOf, isLower, levelAt, type Reading, type Spend, waitFor } from "./level.ts";

/** The most grants kept for window algorithms. */
export const SPENDS_MAX = 4000;

export class LaneState {
  /** Incremented when the quota changes: answers to older requests are then ignored. */
  version = 0;
  reading: Reading | undefined;
  /** A boundary of fixed windows, if known. */
  edge: number | undefined;
  readonly spends: Spend[] = [];
  readonly history = new History();
  allowed = 0;
  denied = 0;
  last: Exchange | undefined;
  /** The error of the service about its figures. */
  problem: Problem | undefined;
  isPeeking = false;
  /** True if it changed since the last peek. */
  isToPeek = false;

  /** The id is part of the bucket's key. */
  constructor(
    readonly id: number,
    private current: Lane,
  ) {}

  get lane(): Lane {
    return this.current;
  }

  /** Changes name, quota or cost. */
  become(lane: Lane): void {
    const isSameQuota = JSON.stringify(takeBody("", lane, 0)) === JSON.stringify(takeBody("", this.current, 0));
    if (!isSameQuota) {
      this.version += 1;
      this.edge = undefined;
    }
    this.current = lane;
    this.problem = undefined;
  }

  /** The current level; undefined before the first answer. */
  level(now: number): number | undefined {
    return this.reading && levelAt(this.lane, this.reading, this.spends, now);
  }

  /** Milliseconds until `tokens` are available; undefined for never, and before the first answer. */
  wait(tokens: number, now: number): number | undefined {
    return this.reading && waitFor(this.lane, this.reading, this.spends, now, tokens);
  }

  /** Counts a request that was decided at `now`. */
  count({ allowed }: TakeAnswer, cost: number, now: number): void {
    if (allowed) this.allowed += 1;
    else this.denied += 1;
    if (allowed) this.spends.push({ at: now, cost });
    if (this.spends.length > SPENDS_MAX) this.spends.shift();
  }

  /** Adds a mark at the current level. */
  mark(isAllowed: boolean, now: number): void {
    this.history.addMark({ at: now, level: this.level(now) ?? 0, isAllowed });
  }

  /** Updates the state from an answer, unless a newer one is known. */
  learn(decision: TakeAnswer, sentAt: number, now: number): void {
    const { limit, remaining, reset_after_ms: resetAfterMs } = decision;
    const reading: Reading = { at: now, limit, remaining, resetAfterMs };
    const known = this.reading;
    const isOverlapping = known !== undefined && known.at > sentAt && known.limit === limit;
    if (isOverlapping && !isLower(this.lane, reading, known, this.spends, now)) return;
    const before = this.level(now);
    if (before !== undefined) this.history.addPoint({ at: now, level: Math.min(before, limit) });
    this.reading = reading;
    this.edge = edgeOf(this.lane, reading) ?? this.edge;
    this.sample(now);
  }

  /** Records the current level. */
  sample(now: number): void {
    const level = this.level(now);
    if (level !== undefined) this.history.addPoint({ at: now, level });
  }
}
