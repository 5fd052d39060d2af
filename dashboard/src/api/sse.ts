/** Reading server-sent events, as WHATWG's standard has them, from bytes that may be cut anywhere. */

export interface ServerEvent {
  /** `message` if the stream gives it no name. */
  readonly event: string;
  readonly data: string;
  /** The last id that the stream has told; empty if none. */
  readonly id: string;
}

/** The most characters that a line, and the data of one event, may have. Two minutes of many busy rules fit in. */
export const LINE_CHARS_MAX = 8 * 1024 * 1024;
export const EVENT_CHARS_MAX = 8 * 1024 * 1024;

/** The stream is not one that this page should read on. */
export class StreamTooLong extends Error {
  constructor(what: "line" | "event") {
    super(`the stream has ${what === "line" ? "a line" : "an event"} that is too long`);
    this.name = "StreamTooLong";
  }
}

/** Reads one stream. A new connection needs a new one. */
export class EventParser {
  /** What the stream says about how long to wait before asking again. */
  retryMs: number | undefined;
  private readonly decoder = new TextDecoder();
  private line = "";
  private data: string[] = [];
  private dataChars = 0;
  private event = "";
  private id = "";
  /** Whether the last character was a CR, whose LF may be the first of what comes next. */
  private endedInCr = false;

  /** Takes what has come; returns the events that it completes. Throws `StreamTooLong`. */
  push(bytes: Uint8Array): ServerEvent[] {
    let text = this.decoder.decode(bytes, { stream: true });
    if (text === "") return [];
    if (this.endedInCr && text.startsWith("\n")) text = text.slice(1);
    this.endedInCr = text.endsWith("\r");
    const lines = text.split(/\r\n|\r|\n/);
    const events: ServerEvent[] = [];
    for (const [at, part] of lines.entries()) {
      this.line += part;
      if (this.line.length > LINE_CHARS_MAX) throw new StreamTooLong("line");
      if (at === lines.length - 1) break;
      const done = this.take(this.line);
      this.line = "";
      if (done !== undefined) events.push(done);
    }
    return events;
  }

  private take(line: string): ServerEvent | undefined {
    if (line === "") return this.dispatch();
    const colon = line.indexOf(":");
    // A comment keeps the connection open, and says nothing.
    if (colon === 0) return undefined;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "data") this.addData(value);
    else if (field === "event") this.event = value;
    else if (field === "id" && !value.includes("\0")) this.id = value;
    else if (field === "retry" && /^\d{1,9}$/.test(value)) this.retryMs = Number(value);
    return undefined;
  }

  private addData(value: string): void {
    this.dataChars += value.length + 1;
    if (this.dataChars > EVENT_CHARS_MAX) throw new StreamTooLong("event");
    this.data.push(value);
  }

  private dispatch(): ServerEvent | undefined {
    const { data, event, id } = this;
    this.data = [];
    this.dataChars = 0;
    this.event = "";
    return data.length === 0 ? undefined : { event: event || "message", data: data.join("\n"), id };
  }
}
