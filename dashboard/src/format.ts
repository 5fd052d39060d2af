/** Formats of numbers, durations and times. */

const WHOLE = new Intl.NumberFormat("en");

/** 12345 is `12,345`. */
export function formatCount(count: number): string {
  return WHOLE.format(count);
}

/** Milliseconds in the unit that suits them: `340 ms`, `1.94 s`, `2 min 5 s`, `3 h 20 min`, `4 d 2 h`. */
export function formatWait(ms: number): string {
  if (ms < 1000) return `${Math.ceil(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${Number(seconds.toFixed(seconds < 10 ? 2 : 1))} s`;
  const units: [string, number][] = [
    ["d", 86_400],
    ["h", 3600],
    ["min", 60],
    ["s", 1],
  ];
  let rest = Math.ceil(seconds);
  const parts: string[] = [];
  for (const [name, size] of units) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count} ${name}`);
    if (parts.length === 2) break;
  }
  return parts.join(" ");
}

/** `2026-08-01T12:00:00.107413Z` is `2026-08-01 12:00:00`. */
export function formatTime(rfc3339: string): string {
  return rfc3339.slice(0, 19).replace("T", " ");
}
