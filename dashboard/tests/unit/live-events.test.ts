import { expect, test } from "@playwright/test";
import {
  connect,
  type Environment,
  HIDDEN_MS_MAX,
  type LinkState,
  RETRY_MS_MAX,
  RETRY_MS_MIN,
  SILENCE_MS_MAX,
  waitOf,
} from "../../src/api/events.ts";
import { needsToken, setToken } from "../../src/session.ts";

/** Test environment with a manual clock and scripted answers. */
class FakeWorld implements Environment {
  time = 1_000_000;
  hidden = false;
  readonly requests: RequestInit[] = [];
  private answers: ((init: RequestInit) => Promise<Response>)[] = [];
  private timers: { at: number; then: () => void }[] = [];
  private readonly listeners = { visibility: new Set<() => void>(), online: new Set<() => void>() };

  /** Scripted answers to the next requests; afterwards the service is down. */
  willAnswer(...answers: ((init: RequestInit) => Promise<Response>)[]): void {
    this.answers = answers;
  }
  fetch = (_path: string, init: RequestInit): Promise<Response> => {
    this.requests.push(init);
    const answer = this.answers.shift();
    return answer === undefined ? Promise.reject(new TypeError("refused")) : answer(init);
  };
  now = () => this.time;
  random = () => 1;
  after = (ms: number, then: () => void) => {
    const timer = { at: this.time + ms, then };
    this.timers.push(timer);
    return () => {
      this.timers = this.timers.filter((other) => other !== timer);
    };
  };
  isHidden = () => this.hidden;
  onVisibility = (changed: () => void) => this.listen("visibility", changed);
  onOnline = (online: () => void) => this.listen("online", online);

  private listen(what: "visibility" | "online", listener: () => void): () => void {
    this.listeners[what].add(listener);
    return () => this.listeners[what].delete(listener);
  }
  tell(what: "visibility" | "online"): void {
    for (const listener of this.listeners[what]) listener();
  }
  async pass(ms: number): Promise<void> {
    const until = this.time + ms;
    for (;;) {
      await settle();
      const next = this.timers.filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.timers = this.timers.filter((other) => other !== next);
      this.time = next.at;
      next.then();
    }
    this.time = until;
    await settle();
  }
  get isQuiet(): boolean {
    return this.timers.length === 0 && this.listeners.visibility.size === 0 && this.listeners.online.size === 0;
  }
}

/** A stream that the test writes to. */
class FakeStream {
  private controller!: ReadableStreamDefaultController<Uint8Array>;
  private readonly body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      this.controller = controller;
    },
  });
  answer = async (init: RequestInit): Promise<Response> => {
    init.signal?.addEventListener("abort", () => this.fail());
    return new Response(this.body, { headers: { "content-type": "text/event-stream" } });
  };
  send(text: string): void {
    this.controller.enqueue(new TextEncoder().encode(text));
  }
  end(): void {
    this.controller.close();
  }
  fail(): void {
    try {
      this.controller.error(new TypeError("network error"));
    } catch {
      // Closed already.
    }
  }
}

/** Runs all pending microtasks. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
  await new Promise((resolve) => setImmediate(resolve));
}

function watch(environment: FakeWorld) {
  const states: LinkState[] = [];
  const events: string[] = [];
  const link = connect(
    "/v1/events",
    { onEvent: ({ data }) => events.push(data), onState: (state) => states.push(state) },
    environment,
  );
  return { states, events, link, kinds: () => states.map(({ kind }) => kind) };
}

test("the connection is live with the first event, and reports all events", async () => {
  const [environment, stream] = [new FakeWorld(), new FakeStream()];
  environment.willAnswer(stream.answer);
  const { events, kinds, link } = watch(environment);
  await settle();
  expect(kinds()).toEqual(["connecting"]);
  stream.send("data: 1\n\nda");
  stream.send("ta: 2\n\n");
  await settle();
  expect(events).toEqual(["1", "2"]);
  expect(kinds()).toEqual(["connecting", "live"]);
  link.stop();
  await settle();
  expect(environment.isQuiet).toBe(true);
});

test("a stream that ends is reconnected after the delay that it sent", async () => {
  const [environment, first, second] = [new FakeWorld(), new FakeStream(), new FakeStream()];
  environment.willAnswer(first.answer, second.answer);
  const { events, states, kinds } = watch(environment);
  await settle();
  first.send("retry: 3000\ndata: 1\n\n");
  await settle();
  first.end();
  await settle();
  expect(states.at(-1)).toMatchObject({ kind: "lost", since: environment.time });
  await environment.pass(2999);
  expect(environment.requests).toHaveLength(1);
  await environment.pass(1);
  expect(environment.requests).toHaveLength(2);
  second.send("data: 2\n\n");
  await settle();
  expect(events).toEqual(["1", "2"]);
  expect(kinds()).toEqual(["connecting", "live", "lost", "live"]);
});

test("the delay grows while the service is down, and the start of the outage is kept", async () => {
  const environment = new FakeWorld();
  const { states } = watch(environment);
  const start = environment.time;
  await environment.pass(1000 + 2000 + 4000);
  expect(environment.requests).toHaveLength(4);
  await environment.pass(10 * RETRY_MS_MAX);
  expect(environment.requests.length).toBeLessThan(16);
  expect(states.at(-1)).toEqual({ kind: "lost", since: start, why: "the service does not answer", isAnswered: false });
});

test("it reconnects at once when the page is visible, the network is back, or on request", async () => {
  const environment = new FakeWorld();
  const { link } = watch(environment);
  await settle();
  environment.tell("online");
  await settle();
  expect(environment.requests).toHaveLength(2);
  environment.tell("visibility");
  await settle();
  expect(environment.requests).toHaveLength(3);
  link.retry();
  await settle();
  expect(environment.requests).toHaveLength(4);
});

test("a silent stream counts as lost", async () => {
  const [environment, stream] = [new FakeWorld(), new FakeStream()];
  environment.willAnswer(stream.answer);
  const { states } = watch(environment);
  await settle();
  stream.send("data: 1\n\n");
  await environment.pass(SILENCE_MS_MAX - 1);
  expect(states.at(-1)?.kind).toBe("live");
  await environment.pass(1);
  expect(states.at(-1)).toMatchObject({ kind: "lost", why: "no data for 10 seconds" });
});

test("a hidden page disconnects after a while, and reconnects when it is visible", async () => {
  const [environment, stream, again] = [new FakeWorld(), new FakeStream(), new FakeStream()];
  environment.willAnswer(stream.answer, again.answer);
  const { kinds } = watch(environment);
  await settle();
  stream.send("data: 1\n\n");
  environment.hidden = true;
  environment.tell("visibility");
  for (let passed = 0; passed < HIDDEN_MS_MAX; passed += 5000) {
    await environment.pass(5000);
    if (passed + 5000 < HIDDEN_MS_MAX) stream.send(": still here\n");
  }
  expect(environment.requests[0]?.signal?.aborted).toBe(true);
  await environment.pass(60 * HIDDEN_MS_MAX);
  expect(environment.requests).toHaveLength(1);
  environment.hidden = false;
  environment.tell("visibility");
  await settle();
  again.send("data: 2\n\n");
  await settle();
  expect(kinds()).toEqual(["connecting", "live", "connecting", "live"]);
});

test("on 401 it asks to sign in, and stops", async () => {
  const environment = new FakeWorld();
  environment.willAnswer(async () => new Response('{"detail":"no token"}', { status: 401 }));
  watch(environment);
  await environment.pass(10 * RETRY_MS_MAX);
  expect(environment.requests).toHaveLength(1);
  expect(needsToken()).toBe(true);
  expect(environment.isQuiet).toBe(true);
  setToken("");
});

test("a 401 for an older token does not ask to sign in", async () => {
  const [environment, stream] = [new FakeWorld(), new FakeStream()];
  environment.willAnswer(async () => {
    setToken("newer");
    return new Response('{"detail":"this token is not known"}', { status: 401 });
  }, stream.answer);
  const { link } = watch(environment);
  await environment.pass(SILENCE_MS_MAX / 2);
  expect(needsToken()).toBe(false);
  expect(environment.requests).toHaveLength(2);
  expect(environment.requests[1]?.headers).toMatchObject({ authorization: "Bearer newer" });
  link.stop();
  setToken("");
});

test("the token is sent as a header", async () => {
  const environment = new FakeWorld();
  setToken("secret");
  watch(environment).link.stop();
  setToken("");
  expect(environment.requests[0]?.headers).toMatchObject({
    authorization: "Bearer secret",
    accept: "text/event-stream",
  });
});

test("an error is reported with the message of the service", async () => {
  const environment = new FakeWorld();
  environment.willAnswer(async () => new Response('{"detail":"too many watch already"}', { status: 503 }));
  const { states } = watch(environment);
  await settle();
  expect(states.at(-1)).toMatchObject({ kind: "lost", why: "too many watch already", isAnswered: true });
  await environment.pass(1000);
  expect(environment.requests).toHaveLength(2);
});

test("after 403 it reconnects only on request", async () => {
  const [environment, stream] = [new FakeWorld(), new FakeStream()];
  environment.willAnswer(async () => new Response('{"detail":"not for this host"}', { status: 403 }), stream.answer);
  const { states, kinds, link } = watch(environment);
  await settle();
  expect(states.at(-1)).toEqual({ kind: "refused", why: "not for this host" });
  environment.tell("online");
  environment.tell("visibility");
  await environment.pass(10 * RETRY_MS_MAX);
  expect(environment.requests).toHaveLength(1);
  link.retry();
  await settle();
  stream.send("data: 1\n\n");
  await settle();
  expect(kinds()).toEqual(["connecting", "refused", "connecting", "live"]);
});

test("an answer that is not an event stream is an error", async () => {
  const environment = new FakeWorld();
  environment.willAnswer(async () => new Response("<html>", { headers: { "content-type": "text/html" } }));
  const { states } = watch(environment);
  await settle();
  expect(states.at(-1)).toMatchObject({ kind: "lost", why: "the answer is not an event stream" });
});

test("delays stay within their bounds, and are spread over the upper half", () => {
  expect(waitOf(0, 1000, 0)).toBe(500);
  expect(waitOf(0, 1000, 1)).toBe(1000);
  expect(waitOf(3, 1000, 1)).toBe(8000);
  expect(waitOf(50, 1000, 1)).toBe(RETRY_MS_MAX);
  expect(waitOf(0, 0, 1)).toBe(RETRY_MS_MIN);
  expect(waitOf(0, 1e9, 1)).toBe(RETRY_MS_MAX);
});
