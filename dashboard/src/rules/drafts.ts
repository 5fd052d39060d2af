/**
 * Drafts: unsaved changes of rules. They outlive the editor, so that closing it, following a link or signing in again
 * loses nothing. They are dropped with the page and when the user signs out.
 */

import type { Rule } from "../api/types.ts";
import type { RuleForm } from "./form.ts";

export interface Draft {
  readonly form: RuleForm;
  /**
   * The version of the rule that was edited, so that concurrent changes are not overwritten; `current` for the version
   * found when the draft is opened; undefined for a new rule.
   */
  readonly base: Rule | "current" | undefined;
}

/** The most drafts; the oldest is dropped. */
const DRAFTS_MAX = 8;

const drafts = new Map<string, Draft>();

/** `id` is the number of a rule, or `new:` and the number of the rule that it copies. */
export function draftOf(id: string): Draft | undefined {
  return drafts.get(id);
}

export function saveDraft(id: string, draft: Draft): void {
  drafts.delete(id);
  drafts.set(id, draft);
  for (const oldest of drafts.keys()) {
    if (drafts.size <= DRAFTS_MAX) break;
    drafts.delete(oldest);
  }
}

export function dropDraft(id: string): void {
  drafts.delete(id);
}

/** Drops all drafts: the next user must not see them. */
export function dropDrafts(): void {
  drafts.clear();
}
