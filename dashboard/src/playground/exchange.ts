/** A request and its answer. */

import type { Answer } from "../api/client.ts";
import type { TakeAnswer } from "../api/types.ts";
import type { TakeBody } from "./lane.ts";

/** `never`: waiting does not help. `refused`: the service rejected the request as invalid. */
export type Outcome = "allowed" | "denied" | "never" | "refused" | "unanswered";

export interface Exchange {
  readonly id: number;
  readonly laneId: number;
  readonly laneName: string;
  /** The time of day when it was sent, in milliseconds since the Unix epoch. */
  readonly sentAt: number;
  readonly tookMs: number;
  readonly body: TakeBody;
  readonly outcome: Outcome;
  /** Undefined without an answer. */
  readonly answer: Answer | undefined;
  readonly decision: TakeAnswer | undefined;
}

/** The decision in an answer; undefined for an error. */
export function decisionOf(answer: Answer): TakeAnswer | undefined {
  if (answer.status !== 200 && answer.status !== 429) return undefined;
  try {
    const parsed: unknown = JSON.parse(answer.text);
    return isDecision(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/** Returns whether this is a decision: a proxy may answer 429, too. */
function isDecision(parsed: unknown): parsed is TakeAnswer {
  if (typeof parsed !== "object" || parsed === null) return false;
  const { allowed, limit, remaining, reset_after_ms } = parsed as Record<string, unknown>;
  return typeof allowed === "boolean" && [limit, remaining, reset_after_ms].every(Number.isFinite);
}

export function outcomeOf(decision: TakeAnswer | undefined): Outcome {
  if (decision === undefined) return "refused";
  if (decision.allowed) return "allowed";
  return decision.retry_after_ms === null ? "never" : "denied";
}

/** Formats JSON; other text stays unchanged. */
export function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}
