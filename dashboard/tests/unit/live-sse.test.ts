import { expect, test } from "@playwright/test";
import { BUFFER_CHARS_MAX, EventParser, EventTooLong, type ServerEvent } from "../../src/api/sse.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

test("an event without a name is a message", () => {
  expect(new EventParser().push(bytes("event: tick\ndata: {}\n\ndata: hello\n\n"))).toEqual([
    { event: "tick", data: "{}" },
    { event: "message", data: "hello" },
  ]);
});

test("comments, unknown fields and events without data are ignored", () => {
  const events = new EventParser().push(bytes(": still here\n\nnews: x\nevent: tick\n\ndata: y\n\n"));
  expect(events).toEqual([{ event: "message", data: "y" }]);
});

test("a stream cut anywhere parses like a whole one", () => {
  const whole = bytes(
    "\u{feff}retry: 1000\r\nevent: tick\r\nid: 1\r\ndata: é \u{1f600}\r\ndata: z\r\n\r\n: x\r\ndata: 2\r\n\r\n",
  );
  const expected = [
    { event: "tick", data: "é \u{1f600}\nz" },
    { event: "message", data: "2" },
  ];
  for (let size = 1; size <= whole.length; size += 1) {
    const parser = new EventParser();
    const events: ServerEvent[] = [];
    for (let at = 0; at < whole.length; at += size) events.push(...parser.push(whole.subarray(at, at + size)));
    expect(events).toEqual(expected);
    expect(parser.retryMs).toBe(1000);
  }
});

test("an incomplete event is not returned", () => {
  const parser = new EventParser();
  expect(parser.push(bytes("data: x\n"))).toEqual([]);
  expect(parser.push(bytes("\n"))).toHaveLength(1);
});

test("a delay that is not a number is ignored", () => {
  const parser = new EventParser();
  expect(parser.push(bytes("retry: soon\ndata: x\n\n"))).toHaveLength(1);
  expect(parser.retryMs).toBeUndefined();
});

test("a line or an event without end is refused", () => {
  const pushUntilFull = (piece: Uint8Array) => {
    const parser = new EventParser();
    parser.push(bytes("data: "));
    for (let sent = 0; sent <= BUFFER_CHARS_MAX + piece.length; sent += piece.length) parser.push(piece);
  };
  const text = "x".repeat(1024 * 1024);
  expect(() => pushUntilFull(bytes(text))).toThrow(EventTooLong);
  expect(() => pushUntilFull(bytes(`data: ${text}\n`))).toThrow(EventTooLong);
});
