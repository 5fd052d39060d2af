import { expect, test } from "@playwright/test";
import { DEFAULT_SETUP } from "../../src/playground/codec.ts";
import { HISTORY_MS, History, MARKS_MAX, POINTS_MAX } from "../../src/playground/history.ts";
import { comparison, LANES_MAX, type Lane, laneOf, limitOf, takeBody, withPlan } from "../../src/playground/lane.ts";
import {
  BURST,
  IN_FLIGHT_MAX,
  LOG_MAX,
  PEEK_MS,
  PEEK_PAUSE_MAX_MS,
  PlaygroundModel,
} from "../../src/playground/model.ts";
import { CATCH_UP_MS, Pacer } from "../../src/playground/pace.ts";
import { play, zeroAtEdge } from "../../src/playground/player.ts";
import { SCENARIOS, type Step, steadily } from "../../src/playground/scenarios.ts";
import { nearestStop, stopsUpTo } from "../../src/playground/stops.ts";
import { FakeWorld, settle } from "./playground-environment.ts";

function modelOf(...lanes: Lane[]): { environment: FakeWorld; model: PlaygroundModel } {
  const environment = new FakeWorld();
  return {
    environment,
    model: new PlaygroundModel(environment, "tab", {
      ...DEFAULT_SETUP,
      lanes: lanes.length > 0 ? lanes : [laneOf("A")],
    }),
  };
}

function counts(model: PlaygroundModel): [number, number][] {
  return model.states.map(({ allowed, denied }) => [allowed, denied]);
}

test.describe("the bench", () => {
  test("peeks without spending, and computes the level in between", async () => {
    const { environment, model } = modelOf();
    model.wake();
    await environment.advance(0);
    model.send(4);
    await environment.advance(0);
    const [state] = model.states;
    expect(state!.level(environment.now())).toBeCloseTo(6);
    environment.time += 1500;
    expect(state!.level(environment.now())).toBeCloseTo(7.5);
    environment.time -= 1500;
    await environment.advance(60_000);
    expect(state!.level(environment.now())).toBe(10);
    expect(counts(model)).toEqual([[4, 0]]);
    const spent = environment.requests.filter(({ cost }) => cost > 0);
    expect(spent).toHaveLength(4);
    expect(environment.requests.length).toBeGreaterThan(50);
    model.rest();
    const before = environment.requests.length;
    await environment.advance(10_000);
    expect(environment.requests).toHaveLength(before);
  });

  test("does not peek while the page is hidden", async () => {
    const { environment, model } = modelOf();
    let isHidden = true;
    await settle();
    const before = environment.requests.length;
    model.wake(() => isHidden);
    await environment.advance(10_000);
    expect(environment.requests).toHaveLength(before);
    isHidden = false;
    await environment.advance(PEEK_MS);
    expect(environment.requests).toHaveLength(before + 1);
    model.rest();
  });

  test("peeks less often while the service does not answer, and at once when it does", async () => {
    const { environment, model } = modelOf();
    await settle();
    environment.isDown = true;
    environment.requests.length = 0;
    const peeks: number[] = [];
    const begun = environment.now();
    model.wake();
    for (let second = 0; second < 32; second += 1) {
      await environment.advance(0);
      peeks.push(...environment.requests.splice(0).map(() => (environment.now() - begun) / 1000));
      await environment.advance(1000);
    }
    expect(peeks).toEqual([0, 1, 3, 7, 15, 23, 31]);
    expect(peeks[5]! - peeks[4]!).toBe(PEEK_PAUSE_MAX_MS / 1000);
    environment.isDown = false;
    environment.requests.length = 0;
    model.send(1);
    await settle();
    expect(model.outage).toBeUndefined();
    expect(environment.requests.map(({ cost }) => cost)).toEqual([1, 0]);
    await environment.advance(PEEK_PAUSE_MAX_MS);
    environment.requests.length = 0;
    await environment.advance(5 * PEEK_MS);
    expect(environment.requests).toHaveLength(5);
    model.rest();
  });

  test("sends the quota as it is now with each request", async () => {
    const { environment, model } = modelOf();
    model.change(1, (lane) => ({ ...lane, capacity: 2 }));
    model.send(3);
    await settle();
    expect(counts(model)).toEqual([[2, 1]]);
    expect(environment.requests.findLast(({ cost }) => cost > 0)).toEqual({
      key: "playground:tab:1:1",
      capacity: 2,
      refill_rate: 1,
      refill_interval: 1,
      cost: 1,
    });
  });

  test("starts over with full buckets under other keys", async () => {
    const { environment, model } = modelOf();
    model.send(BURST);
    await settle();
    model.startOver();
    await settle();
    expect(model.states[0]!.level(environment.now())).toBe(10);
    expect(model.log).toEqual([]);
    model.send(1);
    await settle();
    expect(environment.requests.findLast(({ cost }) => cost > 0)!.key).toBe("playground:tab:2:1");
    expect(counts(model)).toEqual([[1, 0]]);
  });

  test("ignores answers to requests from before it started over", async () => {
    const { environment, model } = modelOf();
    environment.latency = 100;
    model.send(5);
    model.startOver();
    await environment.advance(1000);
    expect(counts(model)).toEqual([[0, 0]]);
    expect(model.inFlight).toBe(0);
  });

  test("bounds the requests in flight, and counts those not sent", async () => {
    const { environment, model } = modelOf(laneOf("A"), laneOf("B"));
    environment.latency = 50;
    model.send(IN_FLIGHT_MAX);
    expect(model.inFlight).toBe(IN_FLIGHT_MAX);
    expect(model.notSent).toBe(IN_FLIGHT_MAX);
    await environment.advance(100);
    expect(model.inFlight).toBe(0);
    expect(model.log).toHaveLength(LOG_MAX);
  });

  test("sends at a steady rate, from all lanes, until it is stopped", async () => {
    const { environment, model } = modelOf(laneOf("A"), laneOf("B", { capacity: 100, tokens: 100 }));
    model.setRate(20);
    model.startSteady();
    await environment.advance(4990);
    model.stopSteady();
    await environment.advance(3000);
    const [[allowed, denied], other] = counts(model) as [[number, number], [number, number]];
    expect(allowed + denied).toBe(100);
    // The initial ten, and one per second since.
    expect(allowed).toBe(14);
    expect(other).toEqual([100, 0]);
  });

  test("runs once after a stop and an immediate start", async () => {
    const { environment, model } = modelOf(laneOf("A", { capacity: 1000 }));
    model.setRate(10);
    model.startSteady();
    await environment.advance(5);
    model.stopSteady();
    model.startSteady();
    await environment.advance(990);
    const [[allowed]] = counts(model) as [[number, number]];
    expect(allowed).toBe(11);
  });

  test("shows an error of the service at the lane until it is corrected", async () => {
    const { model } = modelOf();
    model.change(1, (lane) => ({ ...lane, capacity: 0 }));
    await settle();
    expect(model.states[0]!.problem).toMatchObject({ field: "capacity" });
    model.send(1);
    await settle();
    expect(model.log[0]).toMatchObject({ outcome: "refused" });
    model.change(1, (lane) => ({ ...lane, capacity: 3 }));
    await settle();
    expect(model.states[0]!.problem).toBeUndefined();
  });

  test("keeps peeking at a service that is down, and reports it", async () => {
    const { environment, model } = modelOf();
    model.wake();
    environment.isDown = true;
    await environment.advance(3000);
    expect(model.outage).toBeDefined();
    model.send(1);
    await settle();
    expect(model.log[0]).toMatchObject({ outcome: "unanswered" });
    environment.isDown = false;
    await environment.advance(2000);
    expect(model.outage).toBeUndefined();
  });

  test("stops at a refusal, and goes on after a request that is answered", async () => {
    const { environment, model } = modelOf();
    model.wake();
    await environment.advance(0);
    model.startSteady();
    environment.refusal = 401;
    await environment.advance(2000);
    expect(model.refusal).toBe(401);
    expect(model.isSteady).toBe(false);
    environment.requests.length = 0;
    await environment.advance(20 * PEEK_MS);
    expect(environment.requests).toEqual([]);
    model.send(1);
    await settle();
    expect(model.log[0]).toMatchObject({ outcome: "refused", answer: { status: 401 } });
    // Signed in.
    environment.refusal = undefined;
    model.peekAll();
    await environment.advance(0);
    expect(model.refusal).toBeUndefined();
    expect(model.states[0]?.problem).toBeUndefined();
    environment.requests.length = 0;
    await environment.advance(3 * PEEK_MS);
    expect(environment.requests).toHaveLength(3);
    model.rest();
  });

  test("has one to four lanes", async () => {
    const { model } = modelOf();
    model.removeLane(1);
    expect(model.states).toHaveLength(1);
    for (let times = 0; times < 10; times++) model.addLane();
    expect(model.states).toHaveLength(LANES_MAX);
    expect(new Set(model.states.map(({ lane }) => lane.name)).size).toBe(LANES_MAX);
    model.removeLane(2);
    model.addLane();
    expect(new Set(model.states.map((state) => model.keyOf(state))).size).toBe(LANES_MAX);
  });

  test("shows a cost above the limit as never", async () => {
    const { environment, model } = modelOf(laneOf("A", { cost: 11 }));
    model.send(1);
    await settle();
    expect(model.log[0]).toMatchObject({ outcome: "never" });
    expect(model.states[0]!.wait(11, environment.now())).toBeUndefined();
  });
});

test.describe("scenarios", () => {
  for (const scenario of SCENARIOS) {
    test(`${scenario.title} plays to its end`, async () => {
      const { environment, model } = modelOf();
      model.choose(scenario);
      void model.playScenario();
      await environment.advance(40_000);
      expect(model.playing).toBeUndefined();
      const sent = counts(model).flat();
      const steps = scenario.steps.reduce(
        (sum, { count, lane }) => sum + count * (lane === undefined ? model.states.length : 1),
        0,
      );
      expect(sent.reduce((sum, count) => sum + count)).toBe(steps);
      expect(model.notSent).toBe(0);
      expect(scenario.watch).toContain(" Watch ");
      expect(scenario.watch.length).toBeLessThan(300);
      expect(scenario.steps.map(({ at }) => at)).toEqual(scenario.steps.map(({ at }) => at).sort((a, b) => a - b));
    });
  }

  async function played(id: string): Promise<[number, number][]> {
    const { environment, model } = modelOf();
    model.choose(SCENARIOS.find((scenario) => scenario.id === id)!);
    void model.playScenario();
    await environment.advance(40_000);
    return counts(model);
  }

  test("around the boundary, the fixed window allows twice the limit", async () => {
    // One token of the bucket was refilled meanwhile.
    expect(await played("edge")).toEqual([
      [11, 9],
      [20, 0],
      [10, 10],
    ]);
  });

  test("a first burst that crosses the boundary is reported", async () => {
    for (const [latency, isMissed] of [
      [100, false],
      [2000, true],
    ] as const) {
      const { environment, model } = modelOf();
      model.choose(SCENARIOS.find(({ id }) => id === "edge")!);
      environment.latency = latency;
      void model.playScenario();
      await environment.advance(40_000);
      expect(model.playing).toBeUndefined();
      expect(model.hasMissedEdge).toBe(isMissed);
      model.startOver();
      expect(model.hasMissedEdge).toBe(false);
    }
  });

  test("descriptions match the results", async () => {
    const [large, small] = (await played("mobile")) as [[number, number], [number, number]];
    expect(large[1]).toBe(0);
    expect(small[1]).toBeGreaterThan(small[0]);
    const [typing, script] = (await played("search")) as [[number, number], [number, number]];
    expect(typing[1]).toBe(0);
    expect(script[1]).toBeGreaterThan(100);
    const [inStep, jitter] = (await played("webhooks")) as [[number, number], [number, number]];
    expect(inStep[0]).toBeGreaterThanOrEqual(10);
    expect(inStep[0]).toBeLessThan(20);
    expect(jitter[0]).toBeGreaterThan(30);
    expect(await played("login")).toEqual([
      [5, 59],
      [2, 0],
    ]);
    expect(await played("payment")).toEqual([[3, 2]]);
    const [pages, all] = (await played("batch")) as [[number, number], [number, number]];
    expect(pages[0]).toBeGreaterThan(6);
    expect(all).toEqual([0, 2]);
  });

  test("one that is stopped sends no more", async () => {
    const { environment, model } = modelOf();
    model.choose(SCENARIOS.find(({ id }) => id === "login")!);
    void model.playScenario();
    await environment.advance(1000);
    model.stop();
    const before = environment.requests.length;
    await environment.advance(20_000);
    expect(environment.requests).toHaveLength(before);
    expect(model.playing).toBeUndefined();
  });

  test("steps are done in their order and at their times", async () => {
    const environment = new FakeWorld(5000);
    const done: [number, Step][] = [];
    const steps = [{ at: -100, count: 1 }, ...steadily(0, 1000, 4, 1)];
    const ended = play(
      steps,
      5200,
      environment,
      (step) => done.push([environment.time, step]),
      new AbortController().signal,
    );
    await environment.advance(5000);
    expect(await ended).toBe(true);
    expect(done.map(([time]) => time)).toEqual([5100, 5200, 5450, 5700, 5950]);
  });

  test("time 0 is at a boundary that can still be reached", () => {
    const steps = [{ at: -400, count: 1 }];
    expect(zeroAtEdge(steps, 1000, 5000, 10_000)).toBe(6000);
    expect(zeroAtEdge(steps, 1000, 500, 10_000)).toBe(11_500);
  });
});

test.describe("pacing", () => {
  test("loses no fractions, however the timer ticks", () => {
    for (const tick of [1, 7, 20, 133]) {
      const pacer = new Pacer(0);
      let sent = 0;
      for (let now = 0; now <= 10_000; now += tick) sent += pacer.due(now, 30).send;
      expect(Math.abs(sent - 301)).toBeLessThanOrEqual(Math.ceil((tick * 30) / 1000));
    }
  });

  test("does not catch up after a long pause, and counts the skipped requests", () => {
    const pacer = new Pacer(0);
    pacer.due(0, 10);
    const { send, skipped } = pacer.due(60_000, 10);
    expect(send).toBe((CATCH_UP_MS * 10) / 1000);
    expect(skipped).toBe(600 - send);
  });

  test("at a rate of zero, nothing is due", () => {
    const pacer = new Pacer(0);
    expect([0, 500, 5000].map((now) => pacer.due(now, 0).send)).toEqual([0, 0, 0]);
    expect(pacer.due(5001, 50).send).toBe(1);
  });
});

test.describe("lanes", () => {
  test("a plan has the figures of the rules that a service starts with", () => {
    expect(withPlan(laneOf("A"), "pro")).toMatchObject({ capacity: 500, tokens: 100, period: 1, plan: "pro" });
  });

  test("a comparison has one limit for all", () => {
    const lanes = comparison(laneOf("A", { capacity: 20, tokens: 5 }));
    expect(lanes.map(limitOf)).toEqual([20, 20, 20]);
    expect(lanes.map(({ tokens, period }) => tokens / period)).toEqual([5, 5, 5]);
  });

  test("unused fields are not sent", () => {
    const window = laneOf("A", { algorithm: "sliding_window", refill: "interval" });
    expect(takeBody("k", window, 1)).toEqual({
      key: "k",
      algorithm: "sliding_window",
      refill_rate: 1,
      refill_interval: 1,
      cost: 1,
    });
  });

  test("a slider stops at every small figure, and at few large ones", () => {
    const stops = stopsUpTo(10_000);
    expect(stops.slice(0, 20)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
    expect(stops.at(-1)).toBe(10_000);
    expect([...stops].sort((a, b) => a - b)).toEqual(stops);
    expect(new Set(stops).size).toBe(stops.length);
    expect(stops.length).toBeLessThan(60);
    expect(stops[nearestStop(stops, 490)]).toBe(500);
    expect(nearestStop(stops, -5)).toBe(0);
    expect(nearestStop(stops, 1e9)).toBe(stops.length - 1);
  });
});

test("the history is bounded in time and in number", () => {
  const history = new History();
  for (let at = 0; at < 10_000; at++) {
    history.addPoint({ at: at * 5, level: at });
    history.addMark({ at: at * 5, level: 0, isAllowed: true });
  }
  expect(history.marks.length).toBe(MARKS_MAX);
  expect(history.points.length).toBeLessThanOrEqual(POINTS_MAX);
  history.addMark({ at: 10 * HISTORY_MS, level: 0, isAllowed: false });
  expect(history.marks.length).toBeLessThanOrEqual(2);
});
