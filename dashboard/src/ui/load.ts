/** Loading of data when a component is mounted, and again when its inputs change. */

import { useCallback, useEffect, useState } from "preact/hooks";
import { Problem } from "../api/client.ts";
import { onSession } from "../session.ts";

export interface LoadState<T> {
  /** The last answer; kept while the next one is loading. */
  readonly value: T | undefined;
  readonly problem: Problem | undefined;
  readonly isLoading: boolean;
  readonly reload: () => void;
}

/** Loads when one of `inputs` changes, when `reload` is called, and after signing in. */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, inputs: readonly unknown[]): LoadState<T> {
  const [state, setState] = useState<Omit<LoadState<T>, "reload">>({
    value: undefined,
    problem: undefined,
    isLoading: true,
  });
  const [times, setTimes] = useState(0);
  const reload = useCallback(() => setTimes((times) => times + 1), []);
  useEffect(() => onSession(reload), [reload]);
  useEffect(() => {
    const abort = new AbortController();
    setState((before) => ({ ...before, isLoading: true }));
    load(abort.signal).then(
      (value) => {
        if (!abort.signal.aborted) setState({ value, problem: undefined, isLoading: false });
      },
      (error) => {
        if (abort.signal.aborted) return;
        setState((before) => ({ ...before, problem: asProblem(error), isLoading: false }));
      },
    );
    return () => abort.abort();
  }, [times, ...inputs]);
  return { ...state, reload };
}

/** Converts anything thrown to a `Problem`. */
export function asProblem(error: unknown): Problem {
  return error instanceof Problem ? error : new Problem(0, String(error), undefined);
}
