// Calls Sluicegate over HTTP, with Node.js alone.
import { setTimeout as sleep } from "node:timers/promises";

const url = process.env.SLUICEGATE_URL ?? "http://127.0.0.1:8080";

/** Takes a token from a bucket of three that refills at one per second. Waits after a denial. */
async function take(key) {
  for (;;) {
    const response = await fetch(`${url}/v1/take`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ key, capacity: 3, refill_rate: 1 }),
    });
    if (!response.ok) throw new Error(await response.text());
    const answer = await response.json();
    if (answer.allowed) return answer.remaining;
    if (answer.retry_after_ms === null) throw new Error("this will never be allowed");
    console.log(`denied, waiting ${answer.retry_after_ms} ms`);
    await sleep(answer.retry_after_ms);
  }
}

for (let i = 0; i < 4; i++) console.log(`allowed, ${await take("client:node:http")} left`);
