/**
 * The bench that one plays at: lanes, the requests that they send, and what is known of their buckets.
 *
 * It asks `/v1/take` only, under keys of its own, with the quota of the lane in each request: so a slider counts from the
 * next request on, and no rule in force is touched. Looking at a bucket costs nothing.
 */

import { type Answer, Problem, problemOf } from "../api/client.ts";
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

/** Requests that may be under way at once, of all lanes. */
export const IN_FLIGHT_MAX = 64;
/** Requests of the log. */
export const LOG_MAX = 50;
export const BURST = 10;
/** How often a bucket is looked at. */
export const PEEK_MS = 1000;
/** While the service does not answer, the pause between two looks grows up to this. */
export const PEEK_PAUSE_MAX_MS = 8000;
/** How often steady traffic is sent, and the level noted. */
const TICK_MS = 20;
const SAMPLE_MS = 200;
/** After the last step, so that one sees what came of it. */
const TAIL_MS = 1500;

/** What the bench needs of the world. */
export interface Environment extends Clock {
  take(body: TakeBody): Promise<Answer>;
  /** Milliseconds since the Unix epoch. */
  timeOfDay(): number;
}

/** A scenario that is being played. Times are those of the clock. */
export interface Playback {
  readonly scenario: Scenario;
  /** When the first step is done; before, one waits for an edge. */
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
  /** Requests that were not sent, as too many were under way or the page was held up. */
  notSent = 0;
  /** What was played lately was not what it should have been: requests meant for before the edge came after it. */
  hasMissedEdge = false;
  /** The service does not answer. */
  outage: Problem | undefined;

  private generation = 0;
  private lastLaneId = 0;
  private lastExchangeId = 0;
  /** Steady traffic that is stopped and started at once must not go on twice. */
  private lastRun = 0;
  private readonly listeners = new Set<() => void>();
  private stopPlaying = new AbortController();
  private stopped = new AbortController();

  /** `tab` tells this tab's keys from those of others. */
  constructor(
    private readonly environment: Environment,
    private readonly tab: string,
    setup: Setup = DEFAULT_SETUP,
  ) {
    this.load(setup);
  }

  /** Calls `listener` whenever something has changed; the answer ends that. */
  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** What is to be in the address. */
  setup(): Setup {
    return { lanes: this.states.map(({ lane }) => lane), rate: this.rate, scenario: this.scenario };
  }

  /** Starts over with these lanes. */
  load(setup: Setup): void {
    this.stop();
    this.rate = setup.rate;
    this.scenario = setup.scenario;
    this.fresh(setup.lanes);
  }

  /** Full buckets and an empty log, for the same lanes. */
  startOver(): void {
    this.stop();
    this.fresh(this.states.map(({ lane }) => lane));
  }

  /** Stops everything that sends. */
  stop(): void {
    this.stopPlaying.abort();
    this.playing = undefined;
    this.isSteady = false;
    this.changed();
  }

  /** Looks at the buckets until `rest` is called. A page that nobody sees does not look. */
  wake(isHidden: () => boolean = () => false): void {
    this.stopped = new AbortController();
    void this.watch(isHidden);
    this.repeat(SAMPLE_MS, () => {
      for (const state of this.states) state.sample(this.environment.now());
    });
  }

  /** Neither sends nor looks any more. */
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

  /** The last one stays. */
  removeLane(id: number): void {
    if (this.states.length > 1) this.states = this.states.filter((state) => state.id !== id);
    this.changed();
  }

  /** The first lane under three algorithms. */
  compare(): void {
    const [first] = this.states;
    if (first !== undefined) this.load({ lanes: comparison(first.lane), rate: this.rate, scenario: "" });
  }

  choose(scenario: Scenario): void {
    this.load({ lanes: scenario.lanes, rate: this.rate, scenario: scenario.id });
  }

  /** Sends `count` requests from each lane at once, or from one. */
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

  /** Sends at the rate, whatever it becomes, until it is stopped. A page that nobody sees sends nothing. */
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

  /** Plays the scenario from its beginning, with full buckets. */
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

  /** Time 0 of a scenario. Where the windows have their edges is the service's to say: its clock is not this one. */
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

  /** Looks again and again, more and more seldom while the service does not answer. */
  private async watch(isHidden: () => boolean): Promise<void> {
    const { signal } = this.stopped;
    let pause = PEEK_MS;
    while (!signal.aborted) {
      // A look that is still under way is not to be followed by another at once.
      if (!isHidden()) for (const state of this.states) if (!state.isPeeking) this.peek(state);
      await this.environment.sleep(pause, signal);
      pause = this.outage === undefined ? PEEK_MS : Math.min(pause * 2, PEEK_PAUSE_MAX_MS);
    }
  }

  private peek(state: LaneState): void {
    // One at a time; a change that comes meanwhile is looked at afterwards.
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
      // What a request has done wrong, its cost, a look cannot do right.
      if (state.problem?.field !== "cost") state.problem = undefined;
      state.learn(decision, sent, this.environment.now());
    }
    this.changed();
  }

  private async take(body: TakeBody): Promise<Answer> {
    try {
      const answer = await this.environment.take(body);
      const isBack = this.outage !== undefined;
      this.outage = undefined;
      // What was missed meanwhile is looked up at once.
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
