/** Traffic that one meets, as data: who asks, under which quota, and when. */

import { type Lane, laneOf } from "./lane.ts";

/** At `at` milliseconds, `count` requests at once, from one lane or from all. */
export interface Step {
  readonly at: number;
  readonly count: number;
  /** The index of the lane. */
  readonly lane?: number;
}

export interface Scenario {
  readonly id: string;
  readonly title: string;
  /** What to watch, in two sentences. */
  readonly watch: string;
  readonly lanes: readonly Lane[];
  /** In the order of their times. With `edgeOf`, time 0 is an edge of windows that long, and times may be negative. */
  readonly steps: readonly Step[];
  /** In seconds. */
  readonly edgeOf?: number;
}

/** One request after another, `perSecond` of them, `from` included and `to` not. */
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

/** How far from the edge the two bursts are: the first has to be over when it comes, however slow the network is. */
const BEFORE_EDGE_MS = 1500;
const AFTER_EDGE_MS = 250;

export const SCENARIOS: readonly Scenario[] = [
  {
    id: "mobile",
    title: "Mobile start-up",
    watch:
      "An app that is opened asks for everything at once, and then for little: watch the large bucket take the burst of 15 from what it has saved up. The small one refills just as fast, 2 per second, and denies most of the same requests.",
    lanes: [
      laneOf("Room for a burst", { ...STARTUP, capacity: 20 }),
      laneOf("No room for bursts", { ...STARTUP, capacity: 2 }),
    ],
    steps: inOrder([at(0, 15), at(10_000, 15)], steadily(1500, 9500, 0.5)),
  },
  {
    id: "search",
    title: "Search autocomplete",
    watch:
      "Both may burst to 100 and get 10 tokens per second: watch somebody who types 8 letters a second hardly move the level. A script that asks 40 times a second empties the bucket in about three seconds, and from then on gets the refill rate and no more.",
    lanes: [laneOf("Somebody typing", SEARCH), laneOf("A script", SEARCH)],
    steps: inOrder(steadily(0, 2500, 8, 0), steadily(4500, 7000, 8, 0), steadily(0, 7000, 40, 1)),
  },
  {
    id: "webhooks",
    title: "Webhook retry storm",
    watch:
      "After an outage forty deliveries come again: watch those that do so in step, in three heaps at 0, 1 and 3 seconds, get the first ten through and then find next to nothing in the bucket. The same forty with jitter are spread over twelve seconds, in which it refills, and mostly pass.",
    lanes: [laneOf("All in step", WEBHOOKS), laneOf("With jitter", WEBHOOKS)],
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
      "Each address may try 5 passwords, and gets one more every 12 seconds: watch the attacker's guesses turn into 429 after the fifth. A denial takes nothing, so that the bucket refills while it is hammered; and the owner, who comes from another address, notices none of it.",
    lanes: [laneOf("Attacker", LOGIN), laneOf("Owner", LOGIN)],
    steps: inOrder(steadily(0, 8000, 8, 0), [at(2000, 1, 1), at(6000, 1, 1)]),
  },
  {
    id: "payment",
    title: "Payment",
    watch:
      "One payment per minute, and up to three at once: watch a double click and a second purchase pass, and the fourth be told to come back in a minute. The countdown is the Retry-After of the answer; waiting it out is always enough.",
    lanes: [laneOf("Customer", { capacity: 3, tokens: 1, period: 60 })],
    steps: [at(0, 1), at(300, 1), at(2500, 1), at(4000, 1), at(5500, 1)],
  },
  {
    id: "edge",
    title: "Window edge",
    watch:
      "The limit is 10 per 10 seconds, and 10 requests come just before and 10 just after the edge of a window: watch the fixed window let all 20 pass within two seconds. The token bucket and the sliding window know no edge, and deny all or nearly all of the second ten.",
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
      "A request that does the work of 25 costs 25 tokens: watch the level drop by a quarter each time, and the job settle at one page per 2.5 seconds. Asking for all 150 at once can never pass a bucket of 100, which is why that answer has no Retry-After.",
    lanes: [laneOf("Pages of 25", { ...BATCH, cost: 25 }), laneOf("All 150 at once", { ...BATCH, cost: 150 })],
    steps: inOrder(steadily(0, 3000, 2, 0), steadily(3000, 12_000, 1, 0), [at(500, 1, 1), at(4000, 1, 1)]),
  },
];
