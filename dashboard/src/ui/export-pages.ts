/** Export of a list that the service returns in pages. */

import { call, problemOf, request } from "../api/client.ts";

/** The largest page that the service returns. */
export const PAGE_MAX = 1000;
/** The most rows in one export. */
export const EXPORT_MAX = 100_000;

export type Format = "csv" | "json";

/** Query of the API. */
export type Query = Readonly<Record<string, string>>;

/** A list of the service. */
export interface ListSource {
  readonly path: string;
  /** Member of the answer that has the rows; also the name of the file. */
  readonly member: string;
}

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

/** Returns the function that loads pages of a list in a format. */
export function fetchOf({ path, member }: ListSource, format: Format, query: Query, signal: AbortSignal): Fetch {
  const parameters = { ...query, limit: PAGE_MAX };
  if (format === "json") {
    return async (after) => {
      const answer = await call<Record<string, unknown>>("GET", path, { query: { ...parameters, after }, signal });
      const rows = answer[member] as readonly unknown[];
      const next = answer["next"] as string | null;
      return { text: rows.map((one) => JSON.stringify(one)).join(",\n"), rows: rows.length, next };
    };
  }
  return async (after) => {
    const answer = await request("GET", path, { query: { ...parameters, after, format }, accept: "text/csv", signal });
    if (answer.status !== 200) throw problemOf(answer);
    const next = answer.headers.find(([name]) => name.toLowerCase() === "x-sluicegate-next")?.[1] ?? null;
    return { text: answer.text, rows: countRows(answer.text) - 1, next };
  };
}

/** Loads all pages in sequence as the parts of one file; `onRows` gets the number of rows so far. */
export async function exportAll(
  format: Format,
  member: string,
  fetch: Fetch,
  onRows: (rows: number) => void,
): Promise<ExportFile> {
  const parts: string[] = format === "json" ? [`{${JSON.stringify(member)}:[\n`] : [];
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
