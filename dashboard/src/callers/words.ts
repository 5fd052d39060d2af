/** Texts about the times of a caller. */

import { formatTime, formatWait } from "../format.ts";

/** A caller that expires within this time is marked. */
export const SOON_MS = 7 * 86_400_000;

export interface Expiry {
  readonly text: string;
  readonly kind: "never" | "later" | "soon" | "expired";
}

/** The remaining time until `expiresAt`; `now` is the clock of the service, in milliseconds. */
export function expiryOf(expiresAt: string | null, now: number): Expiry {
  if (expiresAt === null) return { text: "never", kind: "never" };
  const left = Date.parse(expiresAt) - now;
  if (left <= 0) return { text: "expired", kind: "expired" };
  return { text: `in ${formatWait(left)}`, kind: left < SOON_MS ? "soon" : "later" };
}

/** The time since `usedAt`, which is up to 30 s late. */
export function lastUseText(usedAt: string | null, now: number): string {
  if (usedAt === null) return "never";
  const ago = now - Date.parse(usedAt);
  return ago < 60_000 ? "in the last minute" : `${formatWait(ago)} ago`;
}

export function utc(time: string): string {
  return `${formatTime(time)} UTC`;
}
