/** Pages of violations and their export. */

import { call, problemOf, request } from "../api/client.ts";
import type { ViolationList } from "../api/types.ts";
import type { Query } from "./search.ts";

/** The largest page that the service returns. */
export const PAGE_MAX = 1000;
/** The most rows in one export. */
export const EXPORT_MAX = 100_000;

export type Format = "csv" | "json";

/** A page in the format of the export. */
export interface Page {
  readonly text: string;
  readonly rows: number;
  readonly next: string | null;
}

export type Fetch = (after: string | undefined) => Promise<Page>;

export interface ExportFile {
  readonly parts: readonly string[];
  readonly rows: number;
  /** False if the export stopped at `EXPORT_MAX` rows. */
  readonly isAll: boolean;
}

/** Loads a page of violations, newest first. */
export function listViolations(
  query: Query,
  after: string | undefined,
  limit: number,
  signal: AbortSignal,
): Promise<ViolationList> {
  return call("GET", "/v1/violations", { query: { ...query, after, limit }, signal });
}

/** Returns the function that loads pages of a search in a format. */
export function fetchOf(format: Format, query: Query, signal: AbortSignal): Fetch {
  if (format === "json") {
    return async (after) => {
      const { violations, next } = await listViolations(query, after, PAGE_MAX, signal);
      return { text: violations.map((one) => JSON.stringify(one)).join(",\n"), rows: violations.length, next };
    };
  }
  return async (after) => {
    const parameters = { ...query, after, limit: PAGE_MAX, format };
    const answer = await request("GET", "/v1/violations", { query: parameters, accept: "text/csv", signal });
    if (answer.status !== 200) throw problemOf(answer);
    const next = answer.headers.find(([name]) => name.toLowerCase() === "x-sluicegate-next")?.[1] ?? null;
    return { text: answer.text, rows: countRows(answer.text) - 1, next };
  };
}

/** Loads all pages in sequence as the parts of one file; `onRows` gets the number of rows so far. */
export async function exportAll(format: Format, fetch: Fetch, onRows: (rows: number) => void): Promise<ExportFile> {
  const parts: string[] = format === "json" ? ['{"violations":[\n'] : [];
  let rows = 0;
  let after: string | undefined;
  for (;;) {
    const page = await fetch(after);
    if (format === "csv") parts.push(rows === 0 ? page.text : withoutHeader(page.text));
    else if (page.rows > 0) parts.push(rows === 0 ? page.text : `,\n${page.text}`);
    rows += page.rows;
    onRows(rows);
    if (page.next === null || rows >= EXPORT_MAX) {
      if (format === "json") parts.push("\n]}\n");
      return { parts, rows, isAll: page.next === null };
    }
    after = page.next;
  }
}

/** Counts rows: a line break between quotes is part of a value. */
export function countRows(csv: string): number {
  let rows = 0;
  let isQuoted = false;
  for (let at = 0; at < csv.length; at += 1) {
    if (csv[at] === '"') isQuoted = !isQuoted;
    else if (csv[at] === "\n" && !isQuoted) rows += 1;
  }
  return csv === "" || csv.endsWith("\n") ? rows : rows + 1;
}

/** Column names contain no quotes, so the first line break ends the header. */
function withoutHeader(csv: string): string {
  return csv.slice(csv.indexOf("\n") + 1);
}
