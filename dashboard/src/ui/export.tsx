/** Export of all rows of a search to a file. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { formatCount } from "../format.ts";
import {
  EXPORT_MAX,
  type ExportFile,
  exportAll,
  type Format,
  fetchOf,
  type ListSource,
  type Query,
} from "./export-pages.ts";
import { asProblem } from "./load.ts";
import { showToast } from "./toasts.tsx";

/** Time until the file is released: the browser may start to read it late. */
const SAVED_MS_MAX = 60_000;

const TYPES: Record<Format, string> = { csv: "text/csv;charset=utf-8", json: "application/json" };

interface ExportProps {
  readonly source: ListSource;
  readonly query: Query;
}

export function Export({ source, query }: ExportProps): JSX.Element {
  const [rows, setRows] = useState<number>();
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);
  const start = async (format: Format) => {
    const abort = new AbortController();
    running.current = abort;
    setRows(0);
    try {
      const exported = await exportAll(format, source.member, fetchOf(source, format, query, abort.signal), setRows);
      save(exported, `${source.member}.${format}`, TYPES[format]);
    } catch (error) {
      if (abort.signal.aborted) showToast("Export cancelled.", "info");
      else showToast(`Could not export: ${asProblem(error).detail}`, "error");
    } finally {
      setRows(undefined);
    }
  };
  if (rows === undefined) {
    return (
      <div class="row">
        <button type="button" class="button" onClick={() => start("csv")}>
          Export CSV
        </button>
        <button type="button" class="button" onClick={() => start("json")}>
          Export JSON
        </button>
      </div>
    );
  }
  return (
    <div class="row">
      <span class="muted" role="status">
        Exporting: {formatCount(rows)} rows
      </span>
      <button type="button" class="button" onClick={() => running.current?.abort()}>
        Cancel
      </button>
    </div>
  );
}

/** Saves the file and shows the number of rows. */
function save({ parts, rows, isAll }: ExportFile, name: string, type: string): void {
  const url = URL.createObjectURL(new Blob([...parts], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), SAVED_MS_MAX);
  if (isAll) showToast(`Exported ${formatCount(rows)} ${rows === 1 ? "row" : "rows"}.`);
  else
    showToast(
      `Exported the newest ${formatCount(EXPORT_MAX)} rows. There are more: narrow the search to export the rest.`,
      "warning",
    );
}
