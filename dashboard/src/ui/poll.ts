/** Polling of data while the page is visible. */

import { useCallback, useEffect, useState } from "preact/hooks";
import type { Problem } from "../api/client.ts";
import { needsToken, onSession } from "../session.ts";
import { asProblem } from "./load.ts";

export interface PollState<T> {
  /** The last answer; kept after an error. */
  readonly value: T | undefined;
  readonly problem: Problem | undefined;
  /** Loads at once. */
  readonly refresh: () => void;
}

/** The longest pause while the service is down. */
export const PAUSE_MAX_MS = 15_000;

/** The pause before the next request: doubled while the service is down, else `everyMs`. */
export function pauseAfter(problem: Problem, everyMs: number, beforeMs: number): number {
  const isDown = problem.status === 0 || problem.status >= 500;
  return isDown ? Math.max(everyMs, Math.min(beforeMs * 2, PAUSE_MAX_MS)) : everyMs;
}

/**
 * Loads when one of `inputs` changes, after signing in, and `everyMs` after each answer, less often while the service is
 * down; not while the page is hidden or the user must sign in. Does nothing without `load`.
 */
export function usePoll<T>(
  load: ((signal: AbortSignal) => Promise<T>) | undefined,
  everyMs: number,
  inputs: readonly unknown[],
): PollState<T> {
  const [state, setState] = useState<Omit<PollState<T>, "refresh">>({ value: undefined, problem: undefined });
  const [times, setTimes] = useState(0);
  const refresh = useCallback(() => setTimes((times) => times + 1), []);
  useEffect(() => onSession(refresh), [refresh]);
  useEffect(() => {
    if (load === undefined) return undefined;
    const abort = new AbortController();
    let pause = everyMs;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async () => {
      if (!document.hidden && !needsToken()) {
        try {
          const value = await load(abort.signal);
          pause = everyMs;
          if (!abort.signal.aborted) setState({ value, problem: undefined });
        } catch (error) {
          const problem = asProblem(error);
          pause = pauseAfter(problem, everyMs, pause);
          if (!abort.signal.aborted) setState(({ value }) => ({ value, problem }));
        }
      }
      if (!abort.signal.aborted) timer = setTimeout(ask, pause);
    };
    void ask();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [times, everyMs, ...inputs]);
  return { ...state, refresh };
}
