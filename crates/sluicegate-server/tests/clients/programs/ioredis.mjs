// ioredis, as applications use it. `SLUICEGATE_RESP` has no password, `SLUICEGATE_GUARDED` has `canary`.
import assert from "node:assert/strict";
import { Redis } from "ioredis";

const MANY = 5000;
const url = `redis://${process.env.SLUICEGATE_RESP}`;

/** Asserts that all answers are in order and that only the last one is a denial. */
function check(answers) {
  const left = Array.from({ length: MANY }, (_, i) => Math.max(MANY - 2 - i, 0));
  assert.deepEqual(answers.map((answer) => answer[2]), left);
  assert.deepEqual(answers.map((answer) => answer[0]), [...Array(MANY - 1).fill(0), 1]);
}

for (const options of [{}, { enableAutoPipelining: true }, { connectionName: "tests", db: 0 }]) {
  const client = new Redis(url, options);
  const key = `ioredis:${Object.keys(options)}`;
  assert.equal(await client.ping(), "PONG");
  assert.deepEqual(await client.call("CL.THROTTLE", key, 15, 30, 60), [0, 16, 15, -1, 2]);
  // Commands of one turn of the event loop are sent together.
  const asks = Array.from({ length: MANY }, () => client.call("CL.THROTTLE", `${key}:many`, MANY - 2, 1, 3600));
  check(await Promise.all(asks));
  const pipeline = client.pipeline();
  for (let i = 0; i < MANY; i++) pipeline.call("CL.THROTTLE", `${key}:pipeline`, MANY - 2, 1, 3600);
  check((await pipeline.exec()).map(([error, answer]) => error ?? answer));
  await assert.rejects(client.get(key), /this is Sluicegate/);
  const verdict = await client.call("SG.CHECK", "user_id", key, "ip", "203.0.113.9");
  // The client returns maps as arrays of names and values.
  assert.deepEqual(verdict.slice(0, 2), ["allowed", 1]);
  assert.deepEqual(verdict.slice(-2), ["rule_id", null]);
  await client.quit();
}

const [host, port] = process.env.SLUICEGATE_GUARDED.split(":");
const guarded = new Redis({ host, port: Number(port), password: "canary" });
assert.equal(await guarded.ping(), "PONG");
await guarded.quit();
const wrong = new Redis({ host, port: Number(port), password: "other", retryStrategy: null });
wrong.on("error", () => {});
await assert.rejects(wrong.ping());
wrong.disconnect();

// Options of docs/clients/node.md: without a server, calls fail at once.
const options = { enableOfflineQueue: false, maxRetriesPerRequest: 0, commandTimeout: 100 };
const nowhere = new Redis("redis://127.0.0.1:1", options);
nowhere.on("error", () => {});
await assert.rejects(nowhere.call("CL.THROTTLE", "nowhere", 1, 1, 3600));
nowhere.disconnect();
console.log("done");
