// Calls Sluicegate over the Redis protocol, with ioredis (`npm install ioredis`), at its default settings.
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";

const sluicegate = new Redis(`redis://${process.env.SLUICEGATE_RESP ?? "127.0.0.1:6380"}`);

/** Takes a token from a bucket of three that refills at one per second. Waits after a denial. */
async function take(key) {
  for (;;) {
    const [denied, , left, retryAfter] = await sluicegate.call("CL.THROTTLE", key, 2, 1, 1);
    if (!denied) return left;
    if (retryAfter < 0) throw new Error("this will never be allowed");
    console.log(`denied, waiting ${retryAfter} s`);
    await sleep(retryAfter * 1000);
  }
}

for (let i = 0; i < 4; i++) console.log(`allowed, ${await take("client:ioredis")} left`);
await sluicegate.quit();
