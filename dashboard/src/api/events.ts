/**
 * Connection to a stream of server-sent events, with automatic reconnection.
 *
 * It uses `fetch` instead of `EventSource`, which cannot send the token as a header.
 */

import { currentToken, refuseToken } from "../session.ts";
import { headersOf, Problem, problemOf } from "./client.ts";
import { EventParser, type ServerEvent } from "./sse.ts";

/** Bounds of the reconnection delay: it starts at what the stream sent and doubles with every failure. */
export const RETRY_MS_MIN = 250;
export const RETRY_MS_MAX = 15_000;
const RETRY_MS_FIRST = 1000;
/** The stream sends an event every second; after this silence the connection counts as lost. */
export const SILENCE_MS_MAX = 10_000;
/** A page hidden for longer disconnects. */
export const HIDDEN_MS_MAX = 60_000;

export type LinkState =
  | { readonly kind: "connecting" }
  | { readonly kind: "live" }
  /**
   * `since` is when the connection was lost, in milliseconds; `why` is the message to show; `isAnswered` is true if the
   * service answered with an error.
   */
  | { readonly kind: "lost"; readonly since: number; readonly why: string; readonly isAnswered: boolean }
  /** The service denies access: reconnecting would not help. */
  | { readonly kind: "refused"; readonly why: string };

export interface Handlers {
  readonly onEvent: (event: ServerEvent) => void;
  readonly onState: (state: LinkState) => void;
}

/** Dependencies of a connection, replaced in tests. */
export interface Environment {
  readonly fetch: (path: string, init: RequestInit) => Promise<Response>;
  readonly now: () => number;
  /** From 0 to 1. */
  readonly random: () => number;
  /** Calls `then` after `ms`; returns the cancel function. */
  readonly after: (ms: number, then: () => void) => () => void;
  readonly isHidden: () => boolean;
  /** Call back when the page is shown or hidden, and when the network is back; return the unsubscribe function. */
  readonly onVisibility: (changed: () => void) => () => void;
  readonly onOnline: (online: () => void) => () => void;
}

export interface Link {
  /** Connects at once, if it waits to reconnect or was refused. */
  readonly retry: () => void;
  readonly stop: () => void;
}

/**
 * Reconnection delay after `failures` earlier failures in a row. `random` spreads it over the upper half, so that pages
 * that were cut off together do not reconnect together.
 */
export function waitOf(failures: number, firstMs: number, random: number): number {
  const first = Math.min(Math.max(firstMs, RETRY_MS_MIN), RETRY_MS_MAX);
  const longest = Math.min(first * 2 ** failures, RETRY_MS_MAX);
  return Math.round(longest * (0.5 + random / 2));
}

/**
 * Reads the stream at `path` until it is stopped. On 401 it asks the user to sign in and stops; after 403 it connects
 * again only by `retry`.
 */
export function connect(path: string, handlers: Handlers, environment: Environment = BROWSER): Link {
  const stream = new Stream(path, handlers, environment);
  stream.start();
  return { retry: () => stream.retry(), stop: () => stream.stop() };
}

class Stream {
  private attempt: AbortController | undefined;
  private isStopped = false;
  private kind: LinkState["kind"] = "connecting";
  private failures = 0;
  private firstMs = RETRY_MS_FIRST;
  private lostSince: number | undefined;
  private endWait = noop;
  private endSilence = noop;
  private endHidden = noop;
  private endListening = noop;

  constructor(
    private readonly path: string,
    private readonly handlers: Handlers,
    private readonly environment: Environment,
  ) {}

  start(): void {
    const endVisibility = this.environment.onVisibility(() => this.visibilityChanged());
    const endOnline = this.environment.onOnline(() => this.reconnect());
    this.endListening = () => {
      endVisibility();
      endOnline();
    };
    this.setState({ kind: "connecting" });
    void this.open();
  }

  stop(): void {
    this.isStopped = true;
    this.endListening();
    this.endHidden();
    this.closeConnection();
  }

  retry(): void {
    if (this.kind === "refused") this.setState({ kind: "connecting" });
    this.reconnect();
  }

  /** Connects at once, unless it is connected or connecting, or was refused. */
  private reconnect(): void {
    if (this.isStopped || this.attempt !== undefined || this.kind === "refused") return;
    this.endWait();
    void this.open();
  }

  private visibilityChanged(): void {
    this.endHidden();
    if (this.environment.isHidden()) {
      this.endHidden = this.environment.after(HIDDEN_MS_MAX, () => this.disconnect());
    } else {
      this.reconnect();
    }
  }

  // ## Live | lost => connecting, as soon as the page is visible again
  private disconnect(): void {
    if (this.kind === "refused") return;
    this.closeConnection();
    this.setState({ kind: "connecting" });
  }

  /** Closes the connection and cancels the timers. */
  private closeConnection(): void {
    this.endWait();
    this.endSilence();
    this.attempt?.abort();
    this.attempt = undefined;
  }

  private async open(): Promise<void> {
    const attempt = new AbortController();
    this.attempt = attempt;
    const token = currentToken();
    try {
      this.restartSilenceTimer(attempt);
      const response = await this.environment.fetch(this.path, {
        headers: headersOf({ accept: "text/event-stream" }),
        cache: "no-store",
        signal: attempt.signal,
      });
      await this.read(response, attempt);
      this.setLost(attempt, new Error("the service closed the stream"));
    } catch (error) {
      // The user may have signed in while this request was in flight: then it connects again.
      if (error instanceof Problem && error.status === 401 && token === currentToken()) {
        this.stop();
        refuseToken();
      } else if (error instanceof Problem && error.status === 403) {
        this.setRefused(attempt, error.detail);
      } else {
        this.setLost(attempt, error);
      }
    }
  }

  private async read(response: Response, attempt: AbortController): Promise<void> {
    if (response.status >= 400) {
      const { status, statusText } = response;
      throw problemOf({ status, statusText, headers: [], text: await response.text() });
    }
    const type = response.headers.get("content-type") ?? "";
    if (!type.startsWith("text/event-stream") || response.body === null) {
      throw new Problem(response.status, "the answer is not an event stream", undefined);
    }
    const parser = new EventParser();
    const reader = response.body.getReader();
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done || attempt.signal.aborted) return;
        this.restartSilenceTimer(attempt);
        const events = parser.push(value);
        this.firstMs = parser.retryMs ?? this.firstMs;
        if (events.length > 0) this.setLive();
        for (const event of events) this.handlers.onEvent(event);
      }
    } finally {
      // The rest of the stream is not needed; it may have failed already.
      reader.cancel().catch(noop);
    }
  }

  /** Detects a dead connection: after sleep or a lost network there is no error. */
  private restartSilenceTimer(attempt: AbortController): void {
    this.endSilence();
    this.endSilence = this.environment.after(SILENCE_MS_MAX, () => {
      attempt.abort();
      this.setLost(attempt, new Error(`no data for ${SILENCE_MS_MAX / 1000} seconds`));
    });
  }

  // ## Connecting | lost => live
  private setLive(): void {
    this.failures = 0;
    this.lostSince = undefined;
    if (this.kind !== "live") this.setState({ kind: "live" });
  }

  // ## Connecting | live | lost => lost
  private setLost(attempt: AbortController, error: unknown): void {
    // A newer attempt is running, or the connection is stopped.
    if (this.attempt !== attempt) return;
    this.closeConnection();
    this.lostSince ??= this.environment.now();
    const isAnswered = error instanceof Problem && error.status > 0;
    this.setState({ kind: "lost", since: this.lostSince, why: messageOf(error), isAnswered });
    const wait = waitOf(this.failures, this.firstMs, this.environment.random());
    this.failures += 1;
    // A hidden page reconnects when it is visible again.
    if (!this.environment.isHidden()) this.endWait = this.environment.after(wait, () => this.reconnect());
  }

  // ## Connecting | live | lost => refused
  private setRefused(attempt: AbortController, why: string): void {
    if (this.attempt !== attempt) return;
    this.closeConnection();
    this.lostSince = undefined;
    this.setState({ kind: "refused", why });
  }

  private setState(state: LinkState): void {
    this.kind = state.kind;
    this.handlers.onState(state);
  }
}

function messageOf(error: unknown): string {
  if (error instanceof TypeError) return "the service does not answer";
  return error instanceof Error ? error.message : String(error);
}

function noop(): void {}

const BROWSER: Environment = {
  fetch: (path, init) => fetch(path, init),
  now: () => Date.now(),
  random: () => Math.random(),
  after: (ms, then) => {
    const timer = setTimeout(then, ms);
    return () => clearTimeout(timer);
  },
  isHidden: () => document.hidden,
  onVisibility: (changed) => {
    document.addEventListener("visibilitychange", changed);
    return () => document.removeEventListener("visibilitychange", changed);
  },
  onOnline: (online) => {
    addEventListener("online", online);
    return () => removeEventListener("online", online);
  },
};
