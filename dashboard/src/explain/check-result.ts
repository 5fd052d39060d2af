/** Answers to requests that were really sent. */

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

/** What an answer said, whatever it is: one that makes no sense counts as a refusal. */
export function resultOf({ answer }: SentRequest): CheckResult {
  if (answer.status !== 200) return REFUSED;
  try {
    return (JSON.parse(answer.text) as CheckAnswer).allowed ? ALLOWED : DENIED;
  } catch {
    return REFUSED;
  }
}

/** JSON with a line for every field, and anything else as it is. */
export function prettyOf(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
