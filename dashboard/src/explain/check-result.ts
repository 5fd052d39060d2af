/** Results of requests that were sent. */

import type { Answer } from "../api/client.ts";
import type { CheckAnswer } from "../api/types.ts";

export interface SentRequest {
  readonly id: number;
  readonly answer: Answer;
}

export interface CheckResult {
  readonly kind: "allowed" | "denied" | "refused";
  readonly sign: string;
  readonly word: string;
}

const ALLOWED: CheckResult = { kind: "allowed", sign: "✓", word: "allowed" };
const DENIED: CheckResult = { kind: "denied", sign: "✕", word: "denied" };
const REFUSED: CheckResult = { kind: "refused", sign: "!", word: "refused" };

/** The result of an answer; one that cannot be parsed counts as refused. */
export function resultOf({ answer }: SentRequest): CheckResult {
  if (answer.status !== 200) return REFUSED;
  try {
    return (JSON.parse(answer.text) as CheckAnswer).allowed ? ALLOWED : DENIED;
  } catch {
    return REFUSED;
  }
}

/** Formats JSON with a line for every field; other text stays unchanged. */
export function prettyOf(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
