import { expect, test } from "@playwright/test";
import { EVENT_CHARS_MAX, EventParser, LINE_CHARS_MAX, type ServerEvent, StreamTooLong } from "../../src/api/sse.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

function readWhole(text: string): ServerEvent[] {
  return new EventParser().push(bytes(text));
}

test("an event has a name, data and an id; a message has no name", () => {
  expect(readWhole("event: tick\nid: 7\ndata: {}\n\ndata: hello\n\n")).toEqual([
    { event: "tick", data: "{}", id: "7" },
    { event: "message", data: "hello", id: "7" },
  ]);
});

test("data of several lines is one text", () => {
  expect(readWhole("data: a\ndata:\ndata:  b\n\n")).toEqual([{ event: "message", data: "a\n\n b", id: "" }]);
});

test("comments, unknown fields and events without data say nothing", () => {
  expect(readWhole(": still here\n\nnews: x\nevent: tick\n\ndata: y\n\n")).toEqual([
    { event: "message", data: "y", id: "" },
  ]);
});

test("lines end in LF, CR or both", () => {
  const events = readWhole("event: a\r\ndata: 1\r\n\r\nevent: b\rdata: 2\r\revent: c\ndata: 3\n\n");
  expect(events.map(({ event, data }) => event + data)).toEqual(["a1", "b2", "c3"]);
});

test("a stream cut anywhere reads as one that is whole", () => {
  const whole = bytes(
    "\u{feff}retry: 1000\r\nevent: tick\r\nid: 1\r\ndata: é \u{1f600}\r\ndata: z\r\n\r\n: x\r\ndata: 2\r\n\r\n",
  );
  const expected = [
    { event: "tick", data: "é \u{1f600}\nz", id: "1" },
    { event: "message", data: "2", id: "1" },
  ];
  for (let size = 1; size <= whole.length; size += 1) {
    const parser = new EventParser();
    const events: ServerEvent[] = [];
    for (let at = 0; at < whole.length; at += size) events.push(...parser.push(whole.subarray(at, at + size)));
    expect(events).toEqual(expected);
    expect(parser.retryMs).toBe(1000);
  }
});

test("an event that is not complete is not told", () => {
  const parser = new EventParser();
  expect(parser.push(bytes("data: x\n"))).toEqual([]);
  expect(parser.push(bytes("\n"))).toHaveLength(1);
});

test("a wait that is no number, and an id with a NUL, are not taken", () => {
  const parser = new EventParser();
  expect(parser.push(bytes("retry: soon\nid: 1\nid: 2\u0000\ndata: x\n\n"))[0]?.id).toBe("1");
  expect(parser.retryMs).toBeUndefined();
});

test("a line or an event without end is refused", () => {
  const piece = bytes("x".repeat(1024 * 1024));
  const endless = new EventParser();
  const pushLine = () => {
    for (let sent = 0; sent <= LINE_CHARS_MAX; sent += piece.length) endless.push(piece);
  };
  expect(pushLine).toThrow(StreamTooLong);
  const line = bytes(`data: ${"x".repeat(1024 * 1024)}\n`);
  const long = new EventParser();
  const pushEvent = () => {
    for (let sent = 0; sent <= EVENT_CHARS_MAX; sent += line.length) long.push(line);
  };
  expect(pushEvent).toThrow(StreamTooLong);
});
