/** Validation and preview of a rule while it is edited. */

import { useCallback, useEffect, useState } from "preact/hooks";
import { call, type Problem } from "../../api/client.ts";
import type { PreviewAnswer, Rule } from "../../api/types.ts";
import { asProblem } from "../../ui/load.ts";

/** Delay after the last keystroke. A newer request aborts the one in flight. */
const PAUSE_MS = 350;

export interface CheckState {
  /** True if the result is of the current form. */
  readonly isCurrent: boolean;
  /** The validation error, if any. */
  readonly problem: Problem | undefined;
  readonly preview: PreviewAnswer | undefined;
  readonly previewProblem: Problem | undefined;
  /** Loads the preview again: there may be new requests. */
  readonly again: () => void;
}

type State = Omit<CheckState, "again">;

const NOTHING: State = { isCurrent: false, problem: undefined, preview: undefined, previewProblem: undefined };

/** `text` is the body; undefined while the form has local errors. `ruleId` is the rule that it would replace. */
export function useCheck(text: string | undefined, ruleId: number | undefined): CheckState {
  const [state, setState] = useState<State>(NOTHING);
  const [times, setTimes] = useState(0);
  const again = useCallback(() => setTimes((times) => times + 1), []);
  useEffect(() => {
    setState((before) => ({ ...before, isCurrent: false }));
    if (text === undefined) return undefined;
    const abort = new AbortController();
    const timer = setTimeout(async () => {
      const checked = await check(JSON.parse(text), ruleId, abort.signal);
      // The previous preview stays until there is another, so that the page does not jump while typing.
      if (!abort.signal.aborted) setState((before) => ({ ...before, ...checked }));
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text, ruleId, times]);
  return { ...state, again };
}

async function check(body: unknown, ruleId: number | undefined, signal: AbortSignal): Promise<Partial<State>> {
  const problem = await problemFrom(() => dryRun(body, ruleId, signal));
  // A token that may not change rules may still preview them.
  if (problem !== undefined && problem.status !== 403) return { isCurrent: true, problem };
  try {
    const preview = await previewOf(body, ruleId, signal);
    return { isCurrent: true, problem, preview, previewProblem: undefined };
  } catch (thrown) {
    return { isCurrent: true, problem, previewProblem: asProblem(thrown) };
  }
}

async function problemFrom(load: () => Promise<unknown>): Promise<Problem | undefined> {
  try {
    await load();
    return undefined;
  } catch (thrown) {
    return asProblem(thrown);
  }
}

/** Dry run: returns the rule as it would be saved. Nothing is changed. */
export function dryRun(body: unknown, ruleId: number | undefined, signal?: AbortSignal): Promise<Rule> {
  const options = { body, query: { dry_run: "true" }, ...(signal === undefined ? {} : { signal }) };
  return ruleId === undefined
    ? call<Rule>("POST", "/v1/rules", options)
    : call<Rule>("PUT", `/v1/rules/${ruleId}`, options);
}

function previewOf(rule: unknown, ruleId: number | undefined, signal: AbortSignal): Promise<PreviewAnswer> {
  return call<PreviewAnswer>("POST", "/v1/rules/preview", { body: { rule, replaces: ruleId ?? null }, signal });
}
