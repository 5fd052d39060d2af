/** Explanation of the request in the form, loaded after every change and polled while it is shown. */

import { useCallback, useEffect, useState } from "preact/hooks";
import { call, type Problem } from "../api/client.ts";
import type { Explanation } from "../api/types.ts";
import { needsToken, onSession } from "../session.ts";
import { asProblem } from "../ui/load.ts";
import { pauseAfter } from "../ui/poll.ts";
import type { Body } from "./request.ts";
import { pauseOf } from "./verdict.ts";

/** Delay after the last keystroke. */
const TYPING_MS = 200;
/** Polling interval of the buckets. */
const EVERY_MS = 2000;

/** Statuses that do not change until the request is edited or the user signs in. */
const LASTING: readonly number[] = [400, 401, 413];

export interface ExplanationState {
  /** The last answer; kept while the next one is loading. */
  readonly explanation: Explanation | undefined;
  /** When it arrived, by `performance.now()`. */
  readonly at: number;
  readonly problem: Problem | undefined;
  readonly refresh: () => void;
}

/** Explains `body`; undefined while the form is invalid. */
export function useExplanation(body: Body | undefined): ExplanationState {
  const [state, setState] = useState<Omit<ExplanationState, "refresh">>({
    explanation: undefined,
    at: 0,
    problem: undefined,
  });
  const [times, setTimes] = useState(0);
  const refresh = useCallback(() => setTimes((times) => times + 1), []);
  useEffect(() => onSession(refresh), [refresh]);
  const text = body === undefined ? undefined : JSON.stringify(body);
  useEffect(() => {
    if (text === undefined || needsToken()) return undefined;
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    let pause = EVERY_MS;
    const poll = async () => {
      try {
        if (document.hidden) pause = EVERY_MS;
        else {
          const last = await call<Explanation>("POST", "/v1/explain", {
            body: JSON.parse(text),
            signal: abort.signal,
          });
          pause = pauseOf(last, EVERY_MS);
          setState({ explanation: last, at: performance.now(), problem: undefined });
        }
      } catch (error) {
        if (abort.signal.aborted) return;
        const problem = asProblem(error);
        setState((before) => ({ ...before, problem }));
        if (LASTING.includes(problem.status)) return;
        pause = pauseAfter(problem, EVERY_MS, pause);
      }
      timer = setTimeout(poll, pause);
    };
    timer = setTimeout(poll, TYPING_MS);
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [text, times]);
  return { ...state, refresh };
}
