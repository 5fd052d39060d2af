/** Scenarios: typical traffic as data. */

import { type Lane, laneOf } from "./lane.ts";

/** `count` requests at `at` milliseconds, from one lane or from all. */
export interface Step {
  readonly at: number;
  readonly count: number;
  /** The index of the lane. */
  readonly lane?: number;
}

export interface Scenario {
  readonly id: string;
  readonly title: string;
  /** Description: what to watch. */
  readonly watch: string;
  readonly lanes: readonly Lane[];
  /** Sorted by time. With `edgeOf`, time 0 is a boundary of windows of that length, and times may be negative. */
  readonly steps: readonly Step[];
  /** In seconds. */
  readonly edgeOf?: number;
}

/** Single requests at `perSecond`, `from` included, `to` excluded. */
export function steadily(from: number, to: number, perSecond: number, lane?: number): Step[] {
  const count = Math.round(((to - from) * perSecond) / 1000);
  return Array.from({ length: count }, (_, index) => at(from + (index * 1000) / perSecond, 1, lane));
}

function at(time: number, count: number, lane?: number): Step {
  return lane === undefined ? { at: time, count } : { at: time, count, lane };
}

function inOrder(...steps: readonly (readonly Step[])[]): Step[] {
  return steps.flat().sort((one, other) => one.at - other.at);
}

const STARTUP = { tokens: 2, cost: 1 } as const;
const SEARCH = { capacity: 100, tokens: 10 } as const;
const WEBHOOKS = { capacity: 10, tokens: 2 } as const;
const LOGIN = { capacity: 5, tokens: 5, period: 60 } as const;
const EDGE = { capacity: 10, tokens: 10, period: 10 } as const;
const BATCH = { capacity: 100, tokens: 10 } as const;

/** Distances of the two bursts from the boundary: the first must be answered before it, even on a slow network. */
const BEFORE_EDGE_MS = 1500;
const AFTER_EDGE_MS = 250;

export const SCENARIOS: readonly Scenario[] = [
  {
    id: "mobile",
    title: "Mobile start-up",
    watch:
      "An app sends many requests when it is opened, and few afterwards. Watch the large bucket absorb the burst of 15 with its saved tokens. The small one refills just as fast, 2 per second, but denies most of the same requests.",
    lanes: [
      laneOf("Room for a burst", { ...STARTUP, capacity: 20 }),
      laneOf("No room for bursts", { ...STARTUP, capacity: 2 }),
    ],
    steps: inOrder([at(0, 15), at(10_000, 15)], steadily(1500, 9500, 0.5)),
  },
  {
    id: "search",
    title: "Autocomplete",
    watch:
      "Both buckets hold 100 tokens and refill 10 per second. Watch a user who types 8 letters per second hardly lower the level. A script with 40 requests per second empties its bucket in about three seconds, and then gets only the refill rate.",
    lanes: [laneOf("User typing", SEARCH), laneOf("Script", SEARCH)],
    steps: inOrder(steadily(0, 2500, 8, 0), steadily(4500, 7000, 8, 0), steadily(0, 7000, 40, 1)),
  },
  {
    id: "webhooks",
    title: "Webhook retry storm",
    watch:
      "After an outage, forty deliveries are retried. Watch the synchronised retries, in three batches at 0, 1 and 3 seconds: the first ten pass, then the bucket is almost empty. The same forty with jitter are spread over twelve seconds, while the bucket refills, and mostly pass.",
    lanes: [laneOf("Synchronised", WEBHOOKS), laneOf("With jitter", WEBHOOKS)],
    steps: inOrder(
      [at(0, 13, 0), at(1000, 13, 0), at(3000, 14, 0)],
      steadily(0, 1000, 5, 1),
      steadily(1000, 3000, 4, 1),
      steadily(3000, 12_000, 3, 1),
    ),
  },
  {
    id: "login",
    title: "Login brute force",
    watch:
      "Each address may try 5 passwords, and one more every 12 seconds. Watch the attacker's guesses get 429 after the fifth. A denial takes no tokens, so the bucket refills during the attack. The owner, at another address, is not affected.",
    lanes: [laneOf("Attacker", LOGIN), laneOf("Owner", LOGIN)],
    steps: inOrder(steadily(0, 8000, 8, 0), [at(2000, 1, 1), at(6000, 1, 1)]),
  },
  {
    id: "payment",
    title: "Payment",
    watch:
      "One payment per minute, up to three at once. Watch a double click and a second purchase pass, and the fourth payment denied for a minute. The countdown is the Retry-After of the answer; waiting that long is always enough.",
    lanes: [laneOf("Customer", { capacity: 3, tokens: 1, period: 60 })],
    steps: [at(0, 1), at(300, 1), at(2500, 1), at(4000, 1), at(5500, 1)],
  },
  {
    id: "edge",
    title: "Window boundary",
    watch:
      "The limit is 10 per 10 seconds; 10 requests come just before and 10 just after a window boundary. Watch the fixed window allow all 20 within two seconds. The token bucket and the sliding window have no boundary, and deny all or nearly all of the second ten.",
    lanes: [
      laneOf("Token bucket", EDGE),
      laneOf("Fixed window", { ...EDGE, algorithm: "fixed_window" }),
      laneOf("Sliding window", { ...EDGE, algorithm: "sliding_window" }),
    ],
    steps: [at(-BEFORE_EDGE_MS, 10), at(AFTER_EDGE_MS, 10)],
    edgeOf: EDGE.period,
  },
  {
    id: "batch",
    title: "Batch job",
    watch:
      "A request that does the work of 25 costs 25 tokens. Watch the level drop by a quarter each time, and the job settle at one page per 2.5 seconds. A request for all 150 at once can never pass a bucket of 100, so its answer has no Retry-After.",
    lanes: [laneOf("Pages of 25", { ...BATCH, cost: 25 }), laneOf("All 150 at once", { ...BATCH, cost: 150 })],
    steps: inOrder(steadily(0, 3000, 2, 0), steadily(3000, 12_000, 1, 0), [at(500, 1, 1), at(4000, 1, 1)]),
  },
];
