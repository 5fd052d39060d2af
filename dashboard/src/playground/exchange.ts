/** One request and what came back. */

import type { Answer } from "../api/client.ts";
import type { TakeAnswer } from "../api/types.ts";
import type { TakeBody } from "./lane.ts";

/** `never`: waiting does not help. `refused`: the service could not take it for a request. */
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
  /** Not there if nothing came back. */
  readonly answer: Answer | undefined;
  readonly decision: TakeAnswer | undefined;
}

/** What the service decided; undefined if the answer is a refusal. */
export function decisionOf(answer: Answer): TakeAnswer | undefined {
  if (answer.status !== 200 && answer.status !== 429) return undefined;
  try {
    const parsed: unknown = JSON.parse(answer.text);
    return isDecision(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/** A 429 of something in between is no decision. */
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

/** JSON as people read it; other text as it is. */
export function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}
