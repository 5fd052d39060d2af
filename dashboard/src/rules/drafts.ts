/**
 * What was typed and not saved. It outlives the editor: whoever closes it by mistake, follows a link or has to sign in
 * again finds it as it was. It ends with the page,
 * or when one signs out.
 */

import type { Rule } from "../api/types.ts";
import type { RuleForm } from "./form.ts";

export interface Draft {
  readonly form: RuleForm;
  /**
   * The rule in the version that the changes are to, so that what somebody saves meanwhile is not overwritten; `current`
   * for whatever is there when the draft is opened; undefined for a rule that is to be made.
   */
  readonly base: Rule | "current" | undefined;
}

/** The oldest is forgotten beyond that. */
const DRAFTS_MAX = 8;

const drafts = new Map<string, Draft>();

/** `id` is the number of a rule, or `new`. */
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

/** Forgets all: they are not for whoever comes next. */
export function dropDrafts(): void {
  drafts.clear();
}
