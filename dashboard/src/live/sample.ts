/** A little traffic, for those who have none yet. */

import { call } from "../api/client.ts";
import type { Check } from "../api/types.ts";

/** An address that is nobody's: it is kept for documents (RFC 5737). */
export const SAMPLE_ADDRESS = "203.0.113.9";
export const SAMPLE_REQUESTS = 20;
/** So many are on their way at once. */
const IN_FLIGHT_MAX = 4;

/** Two users of the free plan who search, and an address that tries to log in again and again: it will be limited. */
export function sampleRequests(): Check[] {
  const requests: Check[] = [];
  for (let at = 0; at < SAMPLE_REQUESTS; at += 1) {
    if (at % 2 === 0) {
      requests.push({
        user_id: at % 4 === 0 ? "ann" : "bob",
        plan: "free",
        endpoint: "/search",
        method: "GET",
        cost: 1,
      });
    } else {
      requests.push({ ip: SAMPLE_ADDRESS, endpoint: "/login", method: "POST", cost: 1 });
    }
  }
  return requests;
}

/** Sends them, a few at a time. Throws the first `Problem`. */
export async function sendSample(): Promise<{ allowed: number; denied: number }> {
  const waiting = sampleRequests();
  const sent = { allowed: 0, denied: 0 };
  const sendOn = async () => {
    for (let request = waiting.shift(); request !== undefined; request = waiting.shift()) {
      const { allowed } = await call<{ allowed: boolean }>("POST", "/v1/check", { body: request });
      sent[allowed ? "allowed" : "denied"] += 1;
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT_MAX }, sendOn));
  return sent;
}
