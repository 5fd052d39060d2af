/** Search in a list with a time range: form fields, parameters of the address, and query of the API. */

import type { Query } from "./export-pages.ts";

/** A time range that ends now. */
export interface TimeRange {
  readonly name: string;
  readonly title: string;
  readonly seconds: number;
}

export type TimeName = "from" | "to" | "last";

/**
 * The texts of a search. An empty text matches anything. `from` and `to` are RFC 3339; `last` is the name of a time
 * range and excludes them.
 */
export type SearchTexts<Name extends string> = Readonly<Record<Name | TimeName, string>>;

export interface SearchKind<Name extends string> {
  /** Parses the parameters of an address. `last` overrides `from` and `to`. */
  readonly searchOf: (params: URLSearchParams) => SearchTexts<Name>;
  /** The parameters of an address. */
  readonly paramsOf: (search: SearchTexts<Name>) => URLSearchParams;
  /** Query of the API at a moment. */
  readonly queryOf: (search: SearchTexts<Name>, now: number) => Query;
}

/** The functions of a search with these fields, in this order, and time ranges. */
export function searchKind<Name extends string>(
  fields: readonly Name[],
  ranges: readonly TimeRange[],
): SearchKind<Name> {
  const names = [...fields, "from", "to", "last"] as const;
  return {
    searchOf: (params) => {
      const search = Object.fromEntries(names.map((name) => [name, params.get(name) ?? ""])) as Record<
        Name | TimeName,
        string
      >;
      if (ranges.every(({ name }) => name !== search.last)) search.last = "";
      if (search.last !== "") Object.assign(search, { from: "", to: "" });
      return search;
    },
    paramsOf: (search) => {
      const params = new URLSearchParams();
      for (const name of names) if (search[name] !== "") params.append(name, search[name]);
      return params;
    },
    queryOf: (search, now) => {
      const range = ranges.find(({ name }) => name === search.last);
      const from = range === undefined ? search.from : new Date(now - range.seconds * 1000).toISOString();
      const pairs = Object.entries<string>({ ...search, from, last: "" }).map(([name, text]) => [name, text.trim()]);
      return Object.fromEntries(pairs.filter(([, text]) => text !== ""));
    },
  };
}

/** The value of a `datetime-local` input, in UTC; empty for an invalid time. */
export function inputOf(rfc3339: string): string {
  const time = Date.parse(rfc3339);
  return Number.isNaN(time) ? "" : new Date(time).toISOString().slice(0, 19);
}

/** The time of a `datetime-local` input, as RFC 3339. */
export function timeOf(input: string): string {
  const time = Date.parse(`${input}Z`);
  return Number.isNaN(time) ? "" : `${new Date(time).toISOString().slice(0, 19)}Z`;
}
