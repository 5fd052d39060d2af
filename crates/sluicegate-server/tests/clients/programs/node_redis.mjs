// node-redis, as applications use it. `SLUICEGATE_RESP` has no password, `SLUICEGATE_GUARDED` has `canary`.
import assert from "node:assert/strict";
import { createClient } from "redis";

const MANY = 5000;
const url = `redis://${process.env.SLUICEGATE_RESP}`;
const throttle = (key, burst) => ["CL.THROTTLE", key, String(burst), "1", "3600"];

/** Asserts that all answers are in order and that only the last one is a denial. */
function check(answers) {
  const left = Array.from({ length: MANY }, (_, i) => Math.max(MANY - 2 - i, 0));
  assert.deepEqual(answers.map((answer) => answer[2]), left);
  assert.deepEqual(answers.map((answer) => answer[0]), [...Array(MANY - 1).fill(0), 1]);
}

async function connect(options) {
  const client = createClient(options);
  await client.connect();
  return client;
}

for (const options of [{ url }, { url, RESP: 2 }, { url: `${url}/0`, name: "tests" }]) {
  const client = await connect(options);
  const key = `node:${options.RESP}:${options.name}`;
  assert.equal(await client.ping(), "PONG");
  assert.deepEqual(await client.sendCommand(["CL.THROTTLE", key, "15", "30", "60"]), [0, 16, 15, -1, 2]);
  // Commands of one turn of the event loop are sent together.
  check(await Promise.all(Array.from({ length: MANY }, () => client.sendCommand(throttle(`${key}:many`, MANY - 2)))));
  const pipeline = client.multi();
  for (let i = 0; i < MANY; i++) pipeline.addCommand(throttle(`${key}:pipeline`, MANY - 2));
  check(await pipeline.execAsPipeline());
  await assert.rejects(client.get(key), /this is Sluicegate/);
  const verdict = await client.sendCommand(["SG.CHECK", "user_id", key, "ip", "203.0.113.9"]);
  if (options.RESP === 2) {
    assert.equal(verdict.length, 10);
    assert.equal(verdict[0], 1);
    assert.deepEqual(verdict.slice(7), [null, null, null]);
  } else {
    assert.equal(verdict.allowed, true);
    assert.equal(verdict.degraded, false);
    assert.equal(verdict.violated_rule, null);
  }
  await client.close();
}

const guarded = process.env.SLUICEGATE_GUARDED;
for (const RESP of [2, 3]) {
  const client = await connect({ url: `redis://default:canary@${guarded}`, RESP });
  assert.equal(await client.ping(), "PONG");
  await client.close();
}
const wrong = createClient({ url: `redis://default:other@${guarded}`, socket: { reconnectStrategy: false } });
wrong.on("error", () => {});
await assert.rejects(wrong.connect(), /WRONGPASS/);

// Options of docs/clients/node.md: without a server, calls fail at once.
const options = { url: "redis://127.0.0.1:1", disableOfflineQueue: true, commandOptions: { timeout: 100 } };
const nowhere = createClient(options);
nowhere.on("error", () => {});
nowhere.connect().catch(() => {});
await assert.rejects(nowhere.sendCommand(throttle("nowhere", 1)));
nowhere.destroy();
console.log("done");
