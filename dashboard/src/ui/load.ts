/** Something that is asked for when a part is shown, and again when what it depends on changes. */

import { useCallback, useEffect, useState } from "preact/hooks";
import { Problem } from "../api/client.ts";
import { onSession } from "../session.ts";

export interface Loaded<T> {
  /** The last answer; it stays while the next one is on its way. */
  readonly value: T | undefined;
  readonly problem: Problem | undefined;
  readonly isLoading: boolean;
  readonly reload: () => void;
}

/** Asks whenever one of `inputs` changes, when `reload` is called, and when somebody signs in. */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, inputs: readonly unknown[]): Loaded<T> {
  const [state, setState] = useState<Omit<Loaded<T>, "reload">>({
    value: undefined,
    problem: undefined,
    isLoading: true,
  });
  const [times, setTimes] = useState(0);
  const reload = useCallback(() => setTimes((times) => times + 1), []);
  useEffect(() => onSession(reload), [reload]);
  useEffect(() => {
    const leaving = new AbortController();
    setState((before) => ({ ...before, isLoading: true }));
    load(leaving.signal).then(
      (value) => {
        if (!leaving.signal.aborted) setState({ value, problem: undefined, isLoading: false });
      },
      (error) => {
        if (leaving.signal.aborted) return;
        setState((before) => ({ ...before, problem: asProblem(error), isLoading: false }));
      },
    );
    return () => leaving.abort();
  }, [times, ...inputs]);
  return { ...state, reload };
}

/** Whatever was thrown, as something that can be shown. */
export function asProblem(error: unknown): Problem {
  return error instanceof Problem ? error : new Problem(0, String(error), undefined);
}
