/** Loading of the violations of a search, page by page. */

import { useCallback, useEffect, useState } from "preact/hooks";
import type { Problem } from "../api/client.ts";
import { serviceAheadMs } from "../api/clock.ts";
import type { Violation } from "../api/types.ts";
import { needsToken, onSession } from "../session.ts";
import { PAGE_MAX, type Query } from "../ui/export-pages.ts";
import { asProblem } from "../ui/load.ts";
import { listViolations } from "./pages.ts";

/** Rows of the first page: small, so that it is shown quickly. */
const PAGE_FIRST = 100;
/** The most rows loaded, for the timeline and the table. */
const ROWS_MAX = 5000;

export interface SearchState {
  readonly rows: readonly Violation[];
  /** Cursor of the next page; null after the last. */
  readonly next: string | null;
  readonly isLoading: boolean;
  /** True if the first page of this search is loaded. */
  readonly isLoaded: boolean;
  /** When that was loaded, by the clock of the service: `12:00:31`, in UTC. */
  readonly at: string | undefined;
  readonly problem: Problem | undefined;
}

const NOTHING: SearchState = {
  rows: [],
  next: null,
  isLoading: true,
  isLoaded: false,
  at: undefined,
  problem: undefined,
};

/** Loads when `query` changes; it must be a stable object while the search stays the same. */
export function useViolations(query: Query): SearchState {
  const [found, setFound] = useState<SearchState>(NOTHING);
  const [times, setTimes] = useState(0);
  useEffect(() => onSession(() => setTimes((times) => times + 1)), []);
  const load = useCallback(
    async (after: string | undefined, limit: number, signal: AbortSignal): Promise<string | null> => {
      setFound((before) => ({ ...before, isLoading: true, problem: undefined }));
      try {
        const { violations, next } = await listViolations(query, after, limit, signal);
        const isFirst = after === undefined;
        setFound(({ rows, at }) => ({
          rows: isFirst ? violations : [...rows, ...violations],
          next,
          isLoading: false,
          isLoaded: true,
          at: isFirst ? new Date(Date.now() + serviceAheadMs()).toISOString().slice(11, 19) : at,
          problem: undefined,
        }));
        return next;
      } catch (error) {
        if (signal.aborted) return null;
        // Rows of another search are not shown for this one.
        const isFirst = after === undefined;
        setFound((before) => ({ ...(isFirst ? NOTHING : before), isLoading: false, problem: asProblem(error) }));
        return null;
      }
    },
    [query],
  );
  useEffect(() => {
    if (needsToken()) return undefined;
    const ending = new AbortController();
    setFound((before) => ({ ...before, isLoading: true, isLoaded: false, problem: undefined }));
    const loadAll = async () => {
      let after = await load(undefined, PAGE_FIRST, ending.signal);
      for (let rows = PAGE_FIRST; after !== null && rows < ROWS_MAX; rows += PAGE_MAX) {
        after = await load(after, Math.min(PAGE_MAX, ROWS_MAX - rows), ending.signal);
      }
    };
    loadAll();
    return () => ending.abort();
  }, [load, times]);
  return found;
}
