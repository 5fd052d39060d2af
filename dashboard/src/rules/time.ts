/**
 * Durations of quotas. The service stores whole microseconds and shows seconds; the form has a number and a unit.
 * Nothing here rounds: a duration that was read is written back to the microsecond.
 */

export const UNITS = ["us", "ms", "second", "minute", "hour", "day"] as const;
export type Unit = (typeof UNITS)[number];

/** Microseconds of each unit. */
const SIZES: Record<Unit, bigint> = {
  us: 1n,
  ms: 1000n,
  second: 1_000_000n,
  minute: 60_000_000n,
  hour: 3_600_000_000n,
  day: 86_400_000_000n,
};

const DECIMAL = /^(\d+)(?:\.(\d+))?$/;

/** A number as typed, and its unit. */
export interface Time {
  readonly amount: string;
  readonly unit: Unit;
}

/** The microseconds of a duration; undefined if it is not positive, or finer than a microsecond. */
export function microsOf({ amount, unit }: Time): bigint | undefined {
  const match = DECIMAL.exec(amount.trim());
  if (match === null) return undefined;
  const decimals = match[2] ?? "";
  const scaled = BigInt(`${match[1]}${decimals}`) * SIZES[unit];
  const scale = 10n ** BigInt(decimals.length);
  return scaled > 0n && scaled % scale === 0n ? scaled / scale : undefined;
}

/** Seconds in the largest unit in which they are whole; else in seconds with decimals. */
export function timeOf(seconds: number): Time {
  // The shortest decimal of the number has at most the six decimals that were sent.
  const micros = microsOf({ amount: plainDecimal(seconds), unit: "second" });
  if (micros === undefined) return { amount: plainDecimal(seconds), unit: "second" };
  const unit = UNITS.findLast((unit) => micros % SIZES[unit] === 0n) ?? "us";
  if (SIZES[unit] < SIZES.second && micros > SIZES.second) return { amount: plainDecimal(seconds), unit: "second" };
  return { amount: String(micros / SIZES[unit]), unit };
}

/** Decimal notation: small numbers would have an exponent. */
function plainDecimal(seconds: number): string {
  const text = String(seconds);
  return text.includes("e") ? seconds.toFixed(6).replace(/\.?0+$/, "") : text;
}

/** The text in a request body: `1 minute`, `62.5 second`. */
export function timeText({ amount, unit }: Time): string {
  return `${amount.trim()} ${unit}`;
}

/** The name of a unit after a number: `5 minutes`, but `5 ms`. */
export function unitWord(unit: Unit, amount: string): string {
  if (unit === "us") return "µs";
  if (unit === "ms") return "ms";
  return amount.trim() === "1" ? unit : `${unit}s`;
}

/** Text after "per" or "every": `second`, `5 minutes`, `62.5 seconds`. */
export function perWords(time: Time): string {
  const isOne = time.amount.trim() === "1" && SIZES[time.unit] >= SIZES.second;
  return isOne ? time.unit : timeWords(time);
}

/** Text with the number: `1 second`, `5 minutes`. */
export function timeWords(time: Time): string {
  return `${time.amount.trim()} ${unitWord(time.unit, time.amount)}`;
}
