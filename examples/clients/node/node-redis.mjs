// Calls Sluicegate over the Redis protocol, with node-redis (`npm install redis`), at its default settings.
import { setTimeout as sleep } from "node:timers/promises";
import { createClient } from "redis";

const sluicegate = createClient({ url: `redis://${process.env.SLUICEGATE_RESP ?? "127.0.0.1:6380"}` });
await sluicegate.connect();

/** Takes a token from a bucket of three that refills at one per second. Waits after a denial. */
async function take(key) {
  for (;;) {
    const [denied, , left, retryAfter] = await sluicegate.sendCommand(["CL.THROTTLE", key, "2", "1", "1"]);
    if (!denied) return left;
    if (retryAfter < 0) throw new Error("this will never be allowed");
    console.log(`denied, waiting ${retryAfter} s`);
    await sleep(retryAfter * 1000);
  }
}

for (let i = 0; i < 4; i++) console.log(`allowed, ${await take("client:node-redis")} left`);
await sluicegate.close();
