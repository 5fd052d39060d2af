/** Parser of server-sent events: decodes bytes and bounds the buffer around `eventsource-parser`. */

import { createParser } from "eventsource-parser";

export interface ServerEvent {
  /** `message` if the stream names no event. */
  readonly event: string;
  readonly data: string;
}

/** The most characters buffered for one event. Two minutes of history of many busy rules fit. */
export const BUFFER_CHARS_MAX = 8 * 1024 * 1024;

/** A line or an event of the stream exceeds `BUFFER_CHARS_MAX`. */
export class EventTooLong extends Error {
  constructor() {
    super("the service sent an event that is too long");
    this.name = "EventTooLong";
  }
}

/** Parses one stream. A new connection needs a new parser. */
export class EventParser {
  /** The reconnection delay that the stream sent last, in milliseconds. */
  retryMs: number | undefined;
  private readonly decoder = new TextDecoder();
  private events: ServerEvent[] = [];
  private isTooLong = false;
  private readonly parser = createParser({
    maxBufferSize: BUFFER_CHARS_MAX,
    onEvent: ({ event, data }) => this.events.push({ event: event ?? "message", data }),
    onRetry: (retryMs) => {
      this.retryMs = retryMs;
    },
    // Unknown fields and invalid delays are errors, too: the standard says to ignore those.
    onError: ({ type }) => {
      if (type === "max-buffer-size-exceeded") this.isTooLong = true;
    },
  });

  /** Returns the events that these bytes complete; they may be cut anywhere. Throws `EventTooLong`. */
  push(bytes: Uint8Array): ServerEvent[] {
    this.parser.feed(this.decoder.decode(bytes, { stream: true }));
    if (this.isTooLong) throw new EventTooLong();
    const { events } = this;
    this.events = [];
    return events;
  }
}
