import { expect, test } from "@playwright/test";
import { APART_MS_MIN, noteDate, onClock, serviceAheadMs } from "../../src/api/clock.ts";

const NOW = Date.parse("2026-08-01T12:00:00Z");

function dateAfter(ms: number): string {
  return new Date(NOW + ms).toUTCString();
}

test("a wrong clock is detected from an answer, once", () => {
  let times = 0;
  const end = onClock(() => {
    times += 1;
  });
  noteDate(dateAfter(-1000), NOW);
  expect([serviceAheadMs(), times]).toEqual([0, 0]);
  noteDate(dateAfter(-1_200_000), NOW);
  noteDate(dateAfter(-1_200_000 + APART_MS_MIN / 2), NOW);
  for (const date of [null, "", "soon"]) noteDate(date, NOW);
  expect([serviceAheadMs(), times]).toEqual([-1_200_000, 1]);
  // The clock was corrected.
  noteDate(dateAfter(0), NOW);
  expect([serviceAheadMs(), times]).toEqual([0, 2]);
  end();
  noteDate(dateAfter(3_600_000), NOW);
  expect(times).toBe(2);
  noteDate(dateAfter(0), NOW);
});
