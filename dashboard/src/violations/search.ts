/** Search for violations: form fields, parameters of the address, and query of the API. */

export const TEXTS = ["user_id", "ip", "bucket_key", "endpoint", "rule_id", "mode", "from", "to", "last"] as const;

/** An empty text matches anything. `from` and `to` are RFC 3339; `last` is one of `RANGES` and excludes them. */
export type Search = Readonly<Record<(typeof TEXTS)[number], string>>;

/** Time ranges that end now. */
export const RANGES: readonly { readonly name: string; readonly title: string; readonly seconds: number }[] = [
  { name: "15m", title: "Last 15 min", seconds: 900 },
  { name: "1h", title: "Last hour", seconds: 3600 },
  { name: "1d", title: "Last day", seconds: 86_400 },
];

/** Parses the parameters of an address. `last` overrides `from` and `to`. */
export function searchOf(params: URLSearchParams): Search {
  const search = Object.fromEntries(TEXTS.map((name) => [name, params.get(name) ?? ""])) as Record<
    (typeof TEXTS)[number],
    string
  >;
  if (RANGES.every(({ name }) => name !== search.last)) search.last = "";
  if (search.last !== "") {
    search.from = "";
    search.to = "";
  }
  return search;
}

/** The parameters of an address. */
export function paramsOf(search: Search): URLSearchParams {
  const params = new URLSearchParams();
  for (const name of TEXTS) if (search[name] !== "") params.append(name, search[name]);
  return params;
}

/** Query of the API at a moment. */
export type Query = Readonly<Record<string, string>>;

export function queryOf(search: Search, now: number): Query {
  const { last, ...query } = search;
  const range = RANGES.find(({ name }) => name === last);
  const from = range === undefined ? query.from : new Date(now - range.seconds * 1000).toISOString();
  const pairs = Object.entries({ ...query, from }).map(([name, text]) => [name, text.trim()] as const);
  return Object.fromEntries(pairs.filter(([, text]) => text !== ""));
}

/** The parameters that the list of top offenders supports. */
export function topQueryOf({ rule_id, mode, from, to }: Query): Query {
  const pairs = Object.entries({ rule_id, mode, from, to });
  return Object.fromEntries(pairs.filter((pair): pair is [string, string] => pair[1] !== undefined));
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
