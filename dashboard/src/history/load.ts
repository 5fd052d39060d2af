/** Loading of the history, page by page. */

import { useState } from "preact/hooks";
import { call, type Problem } from "../api/client.ts";
import type { HistoryList, HistoryRecord } from "../api/types.ts";
import type { Query } from "../ui/export-pages.ts";
import { asProblem, useLoad } from "../ui/load.ts";

export interface HistoryState {
  /** Newest first; undefined until loaded. */
  readonly records: readonly HistoryRecord[] | undefined;
  readonly problem: Problem | undefined;
  readonly hasOlder: boolean;
  readonly isLoading: boolean;
  readonly loadOlder: () => void;
  /** Loads the newest page again. */
  readonly reload: () => void;
}

/** Loads the newest page of `limit` records, and again when `changes` changes. Use a key that changes with the query. */
export function useHistory(query: Query, limit: number, changes = 0): HistoryState {
  const load = (after: string | undefined, signal?: AbortSignal) =>
    call<HistoryList>("GET", "/v1/history", { query: { ...query, limit, after }, ...(signal && { signal }) });
  const first = useLoad((signal) => load(undefined, signal), [changes]);
  const [older, setOlder] = useState<{ readonly of: HistoryList | undefined; readonly pages: readonly HistoryList[] }>({
    of: undefined,
    pages: [],
  });
  const [problem, setProblem] = useState<Problem>();
  const [isLoading, setLoading] = useState(false);
  // Pages that continue another first page are dropped.
  const pages = first.value === undefined ? [] : [first.value, ...(older.of === first.value ? older.pages : [])];
  const next = pages.at(-1)?.next ?? null;
  const loadOlder = async () => {
    setLoading(true);
    try {
      const page = await load(next ?? undefined);
      setOlder(({ of, pages }) => ({ of: first.value, pages: of === first.value ? [...pages, page] : [page] }));
      setProblem(undefined);
    } catch (thrown) {
      setProblem(asProblem(thrown));
    }
    setLoading(false);
  };
  return {
    records: first.value === undefined ? undefined : pages.flatMap(({ history }) => history),
    problem: first.problem ?? problem,
    hasOlder: next !== null,
    isLoading: isLoading || first.isLoading,
    loadOlder,
    reload: first.reload,
  };
}
