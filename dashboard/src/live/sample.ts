/** Sample traffic for an idle service. */

import { call } from "../api/client.ts";
import type { Check } from "../api/types.ts";

/** Reserved for documentation (RFC 5737). */
export const SAMPLE_ADDRESS = "203.0.113.9";
export const SAMPLE_REQUESTS = 20;
/** Requests in flight at once. */
const IN_FLIGHT_MAX = 4;

/** Searches of two users of the free plan, and repeated logins from one address, which the starter rules limit. */
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

/** Sends the sample requests, a few at a time. Throws the first `Problem`. */
export async function sendSample(): Promise<{ allowed: number; denied: number }> {
  const waiting = sampleRequests();
  const sent = { allowed: 0, denied: 0 };
  const sendOn = async () => {
    for (let request = waiting.shift(); request !== undefined; request = waiting.shift()) {
      const { allowed } = await call<{ allowed: boolean }>("POST", "/v1/check", { body: request, isData: true });
      sent[allowed ? "allowed" : "denied"] += 1;
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT_MAX }, sendOn));
  return sent;
}
