/** List of records, newest first, with those that are older on demand. */

import type { ComponentChildren, JSX } from "preact";
import { Notice } from "../ui/notice.tsx";
import type { HistoryState } from "./load.ts";
import { RecordItem } from "./record.tsx";
import "./history.css";

interface RecordsProps {
  readonly state: HistoryState;
  /** Shown if there are no records. */
  readonly empty: ComponentChildren;
}

export function Records({ state, empty }: RecordsProps): JSX.Element {
  const { records, problem } = state;
  return (
    <>
      {problem !== undefined && <Notice kind="error">{problem.detail}</Notice>}
      {records === undefined && problem === undefined && <p class="muted">Loading…</p>}
      {records?.length === 0 && <p class="muted">{empty}</p>}
      {records !== undefined && records.length > 0 && (
        <ol class="records" aria-label="Records, newest first">
          {records.map((record) => (
            <RecordItem key={record.history_id} record={record} />
          ))}
        </ol>
      )}
      {state.hasOlder && (
        <div class="row">
          <button type="button" class="button" disabled={state.isLoading} onClick={state.loadOlder}>
            Older
          </button>
        </div>
      )}
    </>
  );
}
