/** What the service says of a rule while it is being written, and what it would have done to the last requests. */

import { useCallback, useEffect, useState } from "preact/hooks";
import { call, type Problem } from "../../api/client.ts";
import type { PreviewAnswer, Rule } from "../../api/types.ts";
import { asProblem } from "../../ui/load.ts";

/** So long nothing may have been typed. One question at a time is on its way: the next one ends it. */
const PAUSE_MS = 350;

export interface CheckState {
  /** Whether what is shown is of what is typed. */
  readonly isCurrent: boolean;
  /** What is wrong with it, if anything is. */
  readonly problem: Problem | undefined;
  readonly preview: PreviewAnswer | undefined;
  readonly previewProblem: Problem | undefined;
  /** Asks once more: there may be new requests. */
  readonly again: () => void;
}

type State = Omit<CheckState, "again">;

const NOTHING: State = { isCurrent: false, problem: undefined, preview: undefined, previewProblem: undefined };

/** `text` is the body; undefined while it cannot be one. `ruleId` is the rule that it would take the place of. */
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
      // The figures of before stay while there are no others: the page does not jump with every letter.
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
  const problem = await refusal(() => dryRun(body, ruleId, signal));
  // Whoever may not change rules may still see what they would do.
  if (problem !== undefined && problem.status !== 403) return { isCurrent: true, problem };
  try {
    const preview = await previewOf(body, ruleId, signal);
    return { isCurrent: true, problem, preview, previewProblem: undefined };
  } catch (thrown) {
    return { isCurrent: true, problem, previewProblem: asProblem(thrown) };
  }
}

async function refusal(asked: () => Promise<unknown>): Promise<Problem | undefined> {
  try {
    await asked();
    return undefined;
  } catch (thrown) {
    return asProblem(thrown);
  }
}

/** The rule as it would be, with all its columns. Nothing is changed. */
export function dryRun(body: unknown, ruleId: number | undefined, signal?: AbortSignal): Promise<Rule> {
  const options = { body, query: { dry_run: "true" }, ...(signal === undefined ? {} : { signal }) };
  return ruleId === undefined
    ? call<Rule>("POST", "/v1/rules", options)
    : call<Rule>("PUT", `/v1/rules/${ruleId}`, options);
}

function previewOf(rule: unknown, ruleId: number | undefined, signal: AbortSignal): Promise<PreviewAnswer> {
  return call<PreviewAnswer>("POST", "/v1/rules/preview", { body: { rule, replaces: ruleId ?? null }, signal });
}
