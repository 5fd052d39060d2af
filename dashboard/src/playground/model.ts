/**
 * Model of the playground: lanes, their requests, and the levels of their buckets.
 *
 * It calls only `/v1/take`, with its own keys and the quota of the lane in each request: a slider takes effect with the
 * next request, and rules are not affected. Peeking at a bucket costs nothing.
 */

import { type Answer, Problem, problemOf } from "../api/client.ts";
import { isRefusal } from "../api/refusal.ts";
import { DEFAULT_SETUP, RATE_DEFAULT, type Setup } from "./codec.ts";
import { decisionOf, type Exchange, outcomeOf } from "./exchange.ts";
import {
  comparison,
  LANES_MAX,
  type Lane,
  type LaneChange,
  laneOf,
  periodMs,
  type TakeBody,
  takeBody,
} from "./lane.ts";
import { LaneState } from "./lane-state.ts";
import { Pacer } from "./pace.ts";
import { type Clock, durationOf, hasMissedEdge, play, zeroAtEdge } from "./player.ts";
import { SCENARIOS, type Scenario } from "./scenarios.ts";

/** The most requests in flight, of all lanes. */
export const IN_FLIGHT_MAX = 64;
/** The most requests in the log. */
export const LOG_MAX = 50;
export const BURST = 10;
/** Interval between peeks at a bucket. */
export const PEEK_MS = 1000;
/** The longest pause between peeks while the service does not answer. */
export const PEEK_PAUSE_MAX_MS = 8000;
/** Intervals of steady traffic and of level samples. */
const TICK_MS = 20;
const SAMPLE_MS = 200;
/** Pause after the last step of a scenario, to show its effect. */
const TAIL_MS = 1500;

/** Dependencies of the model, replaced in tests. */
export interface Environment extends Clock {
  take(body: TakeBody): Promise<Answer>;
  /** Milliseconds since the Unix epoch. */
  timeOfDay(): number;
}

/** A scenario that is playing. Times are those of the clock. */
export interface Playback {
  readonly scenario: Scenario;
  /** Time of the first step; before it, the model waits for a window boundary. */
  readonly begins: number;
  readonly ends: number;
}

export class PlaygroundModel {
  states: readonly LaneState[] = [];
  rate = RATE_DEFAULT;
  scenario = "";
  playing: Playback | undefined;
  isSteady = false;
  /** Newest first. */
  log: readonly Exchange[] = [];
  inFlight = 0;
  /** Requests not sent, because too many were in flight or the page was delayed. */
  notSent = 0;
  /** True if requests of the last scenario that belong before the window boundary came after it. */
  hasMissedEdge = false;
  /** The last error, while the service does not answer. */
  outage: Problem | undefined;
  /** Status of the last answer, if the service requires a caller and this page is not one: 401 or 403. */
  refusal: number | undefined;

  private generation = 0;
  private lastLaneId = 0;
  private lastExchangeId = 0;
  /** Run number of steady traffic: after a stop and a start, the older loop must end. */
  private lastRun = 0;
  private readonly listeners = new Set<() => void>();
  private stopPlaying = new AbortController();
  private stopped = new AbortController();

  /** `tab` keeps the keys of browser tabs apart. */
  constructor(
    private readonly environment: Environment,
    private readonly tab: string,
    setup: Setup = DEFAULT_SETUP,
  ) {
    this.load(setup);
  }

  /** Calls `listener` after every change; returns the unsubscribe function. */
  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** The state that the address holds. */
  setup(): Setup {
    return { lanes: this.states.map(({ lane }) => lane), rate: this.rate, scenario: this.scenario };
  }

  /** Replaces the lanes. */
  load(setup: Setup): void {
    this.stop();
    this.rate = setup.rate;
    this.scenario = setup.scenario;
    this.fresh(setup.lanes);
  }

  /** Resets buckets and log of the same lanes. */
  startOver(): void {
    this.stop();
    this.fresh(this.states.map(({ lane }) => lane));
  }

  /** Stops sending. */
  stop(): void {
    this.stopPlaying.abort();
    this.playing = undefined;
    this.isSteady = false;
    this.changed();
  }

  /** Peeks at the buckets until `rest` is called, while the page is visible. */
  wake(isHidden: () => boolean = () => false): void {
    this.stopped = new AbortController();
    void this.watch(isHidden);
    this.repeat(SAMPLE_MS, () => {
      for (const state of this.states) state.sample(this.environment.now());
    });
  }

  /** Stops sending and peeking. */
  rest(): void {
    this.stop();
    this.stopped.abort();
  }

  change(id: number, change: LaneChange): void {
    const state = this.states.find((state) => state.id === id);
    if (state === undefined) return;
    state.become(change(state.lane));
    this.changed();
    this.peek(state);
  }

  addLane(): void {
    if (this.states.length >= LANES_MAX) return;
    const names = this.states.map(({ lane }) => lane.name);
    let number = this.states.length + 1;
    while (names.includes(`Client ${number}`)) number += 1;
    const added = this.fill(laneOf(`Client ${number}`));
    this.states = [...this.states, added];
    this.changed();
    this.peek(added);
  }

  /** Removes a lane, unless it is the last one. */
  removeLane(id: number): void {
    if (this.states.length > 1) this.states = this.states.filter((state) => state.id !== id);
    this.changed();
  }

  /** Compares three algorithms for the first lane. */
  compare(): void {
    const [first] = this.states;
    if (first !== undefined) this.load({ lanes: comparison(first.lane), rate: this.rate, scenario: "" });
  }

  choose(scenario: Scenario): void {
    this.load({ lanes: scenario.lanes, rate: this.rate, scenario: scenario.id });
  }

  /** Sends `count` requests at once, from one lane or from each. */
  send(count: number, id?: number): void {
    const states = id === undefined ? this.states : this.states.filter((state) => state.id === id);
    for (let sent = 0; sent < count; sent++) {
      for (const state of states) {
        if (this.inFlight < IN_FLIGHT_MAX) void this.request(state);
        else this.notSent += 1;
      }
    }
    this.changed();
  }

  setRate(rate: number): void {
    this.rate = rate;
    this.changed();
  }

  /** Sends at the current rate until it is stopped, while the page is visible. */
  startSteady(isHidden: () => boolean = () => false): void {
    if (this.isSteady) return;
    this.isSteady = true;
    this.changed();
    const pacer = new Pacer(this.environment.now());
    this.lastRun += 1;
    const run = this.lastRun;
    this.repeat(
      TICK_MS,
      () => {
        const { send, skipped } = pacer.due(this.environment.now(), this.rate);
        if (isHidden()) return;
        this.notSent += skipped * this.states.length;
        if (send > 0) this.send(send);
      },
      () => this.isSteady && run === this.lastRun,
    );
  }

  stopSteady(): void {
    this.isSteady = false;
    this.changed();
  }

  /** Plays the scenario from the start, with full buckets. */
  async playScenario(): Promise<void> {
    const scenario = SCENARIOS.find(({ id }) => id === this.scenario);
    if (scenario === undefined) return;
    this.startOver();
    const stop = new AbortController();
    this.stopPlaying = stop;
    const zero = await this.zeroOf(scenario);
    if (stop.signal.aborted || zero === undefined) return;
    for (const state of this.states) if (state.lane.period === scenario.edgeOf) state.edge = zero;
    const begins = zero + (scenario.steps[0]?.at ?? 0);
    this.playing = { scenario, begins, ends: begins + durationOf(scenario.steps) };
    this.changed();
    const act = ({ count, lane }: { count: number; lane?: number }) => {
      const state = lane === undefined ? undefined : this.states[lane];
      if (lane === undefined || state !== undefined) this.send(count, state?.id);
    };
    const isDone = await play(scenario.steps, zero, this.environment, act, stop.signal);
    if (isDone) await this.environment.sleep(TAIL_MS, stop.signal);
    if (stop.signal.aborted) return;
    this.hasMissedEdge = scenario.edgeOf !== undefined && hasMissedEdge(scenario.steps, zero, this.states);
    this.playing = undefined;
    this.changed();
  }

  now(): number {
    return this.environment.now();
  }

  peekAll(): void {
    for (const state of this.states) this.peek(state);
  }

  keyOf(state: LaneState): string {
    return `playground:${this.tab}:${this.generation}:${state.id}`;
  }

  private fresh(lanes: readonly Lane[]): void {
    this.generation += 1;
    this.lastLaneId = 0;
    this.states = lanes.slice(0, LANES_MAX).map((lane) => this.fill(lane));
    this.log = [];
    this.notSent = 0;
    this.hasMissedEdge = false;
    this.changed();
    this.peekAll();
  }

  private fill(lane: Lane): LaneState {
    this.lastLaneId += 1;
    return new LaneState(this.lastLaneId, lane);
  }

  /** Time 0 of a scenario. Window boundaries follow the clock of the service, so it is asked for them. */
  private async zeroOf({ steps, edgeOf }: Scenario): Promise<number | undefined> {
    if (edgeOf === undefined) return this.environment.now() - (steps[0]?.at ?? 0);
    const window = laneOf("", { algorithm: "fixed_window", tokens: LANES_MAX, period: edgeOf });
    const key = `playground:${this.tab}:${this.generation}:edge`;
    const decision = await this.take(takeBody(key, window, 1)).then(decisionOf, () => undefined);
    if (decision === undefined) return undefined;
    return zeroAtEdge(steps, this.environment.now(), decision.reset_after_ms, periodMs(window));
  }

  private async request(state: LaneState): Promise<void> {
    const { generation } = this;
    const { lane, version } = state;
    const body = takeBody(this.keyOf(state), lane, lane.cost);
    const sent = { now: this.environment.now(), timeOfDay: this.environment.timeOfDay() };
    this.inFlight += 1;
    const answer = await this.take(body).catch(() => undefined);
    this.inFlight -= 1;
    if (generation !== this.generation) return this.changed();
    const decision = answer && decisionOf(answer);
    const now = this.environment.now();
    this.lastExchangeId += 1;
    const exchange: Exchange = {
      id: this.lastExchangeId,
      laneId: state.id,
      laneName: lane.name,
      sentAt: sent.timeOfDay,
      tookMs: now - sent.now,
      body,
      outcome: answer === undefined ? "unanswered" : outcomeOf(decision),
      answer,
      decision,
    };
    state.last = exchange;
    this.log = [exchange, ...this.log].slice(0, LOG_MAX);
    if (answer !== undefined && decision === undefined) state.problem = problemOf(answer);
    if (decision !== undefined) {
      state.count(decision, lane.cost, now);
      if (version === state.version) state.learn(decision, sent.now, now);
      state.mark(decision.allowed, now);
    }
    this.changed();
  }

  /** Peeks periodically, less often while the service does not answer. */
  private async watch(isHidden: () => boolean): Promise<void> {
    const { signal } = this.stopped;
    let pause = PEEK_MS;
    while (!signal.aborted) {
      // At most one peek per lane is in flight.
      // Wrong tokens are counted, so a refusal is not repeated by itself.
      if (!isHidden() && this.refusal === undefined)
        for (const state of this.states) if (!state.isPeeking) this.peek(state);
      await this.environment.sleep(pause, signal);
      pause = this.outage === undefined ? PEEK_MS : Math.min(pause * 2, PEEK_PAUSE_MAX_MS);
    }
  }

  private peek(state: LaneState): void {
    // One at a time; a change meanwhile leads to another peek afterwards.
    if (state.isPeeking) {
      state.isToPeek = true;
      return;
    }
    state.isPeeking = true;
    void this.look(state).finally(() => {
      state.isPeeking = false;
      if (!state.isToPeek || !this.states.includes(state)) return;
      state.isToPeek = false;
      this.peek(state);
    });
  }

  private async look(state: LaneState): Promise<void> {
    const { generation } = this;
    const { version, lane } = state;
    const sent = this.environment.now();
    const answer = await this.take(takeBody(this.keyOf(state), lane, 0)).catch(() => undefined);
    if (generation !== this.generation || version !== state.version || answer === undefined) return this.changed();
    const decision = decisionOf(answer);
    if (decision === undefined) state.problem = problemOf(answer);
    else {
      // A peek has no cost, so its success does not clear an error about the cost.
      if (state.problem?.field !== "cost") state.problem = undefined;
      state.learn(decision, sent, this.environment.now());
    }
    this.changed();
  }

  private async take(body: TakeBody): Promise<Answer> {
    try {
      const answer = await this.environment.take(body);
      const isBack = this.outage !== undefined || this.refusal !== undefined;
      this.outage = undefined;
      this.refusal = isRefusal(answer.status) ? answer.status : undefined;
      if (this.refusal !== undefined) {
        this.stop();
        return answer;
      }
      // The levels may have changed meanwhile.
      if (isBack) this.peekAll();
      return answer;
    } catch (error) {
      this.outage = error instanceof Problem ? error : new Problem(0, String(error), undefined);
      throw error;
    }
  }

  private repeat(every: number, act: () => void, goesOn: () => boolean = () => true): void {
    const { signal } = this.stopped;
    const again = async () => {
      while (!signal.aborted && goesOn()) {
        act();
        await this.environment.sleep(every, signal);
      }
    };
    void again();
  }

  private changed(): void {
    for (const listener of this.listeners) listener();
  }
}
