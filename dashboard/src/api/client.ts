/** HTTP client of the service's API. */

import { currentToken, refuseToken } from "../session.ts";
import { noteDate } from "./clock.ts";

/** The longest time to wait for an answer. */
const TIMEOUT_MS = 15_000;

/** An HTTP answer of any status. */
export interface Answer {
  readonly status: number;
  readonly statusText: string;
  /** Sorted by name. */
  readonly headers: readonly (readonly [string, string])[];
  readonly text: string;
}

/** An error answer. */
export class Problem extends Error {
  constructor(
    /** HTTP status; 0 if there was no answer. */
    readonly status: number,
    readonly detail: string,
    /** The field of the request that is wrong, if it is one field. */
    readonly field: string | undefined,
    /** The rule that already has the same key pattern and plan. */
    readonly conflictingRuleId?: number | undefined,
  ) {
    super(detail);
    this.name = "Problem";
  }
}

export interface Options {
  readonly query?: Record<string, string | number | undefined>;
  readonly body?: unknown;
  readonly ifMatch?: number | undefined;
  /** True to create only: status 412 if there is one already. */
  readonly ifNoneMatch?: boolean;
  /** Reason for a change, for the history. */
  readonly reason?: string | undefined;
  readonly accept?: string;
  readonly signal?: AbortSignal;
  /** True for the endpoints of callers, which may ask for a token while the administration does not. */
  readonly isData?: boolean;
  /** A token to use instead of that of the session. */
  readonly token?: string;
}

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** The path with its query; undefined and empty parameters are left out. */
export function urlOf(path: string, query: Options["query"] = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") params.append(name, String(value));
  }
  const text = params.toString();
  return text === "" ? path : `${path}?${text}`;
}

/** The headers of a request, with the token of the session. */
export function headersOf(options: Options): Record<string, string> {
  const headers: Record<string, string> = {};
  if (options.accept !== undefined) headers["accept"] = options.accept;
  if (options.body !== undefined) headers["content-type"] = "application/json";
  if (options.ifMatch !== undefined) headers["if-match"] = `"${options.ifMatch}"`;
  if (options.ifNoneMatch === true) headers["if-none-match"] = "*";
  const reason = headerText(options.reason ?? "");
  if (reason !== "") headers["x-sluicegate-reason"] = reason;
  const token = options.token ?? currentToken();
  if (token !== "") headers["authorization"] = `Bearer ${token}`;
  return headers;
}

/** The UTF-8 bytes of a text, one character each, as `fetch` requires. Control characters become spaces. */
function headerText(text: string): string {
  const plain = text.replace(/\p{Cc}/gu, " ").trim();
  return Array.from(new TextEncoder().encode(plain), (byte) => String.fromCharCode(byte)).join("");
}

/** Sends a request and returns the answer of any status. Throws a `Problem` with status 0 if there is none. */
export async function request(method: Method, path: string, options: Options = {}): Promise<Answer> {
  const token = options.token ?? currentToken();
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  const signal = options.signal === undefined ? timeout : AbortSignal.any([timeout, options.signal]);
  try {
    const response = await fetch(urlOf(path, options.query), {
      method,
      headers: headersOf(options),
      signal,
      ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
    });
    noteDate(response.headers.get("date"), Date.now());
    const text = await response.text();
    // The user may have signed in while this request was in flight.
    if (response.status === 401 && options.isData !== true && token === currentToken()) refuseToken();
    return { status: response.status, statusText: response.statusText, headers: [...response.headers], text };
  } catch (error) {
    if (options.signal?.aborted === true) throw error;
    throw new Problem(0, "the service does not answer; check that it is running", undefined);
  }
}

/** Sends a request and returns the parsed body. Throws a `Problem` for status 400 and above. */
export async function call<T>(method: Method, path: string, options: Options = {}): Promise<T> {
  const answer = await request(method, path, options);
  if (answer.status >= 400) throw problemOf(answer);
  return (answer.text === "" ? undefined : JSON.parse(answer.text)) as T;
}

/** Fields of `application/problem+json` that the page reads. */
interface ProblemBody {
  readonly title?: string;
  readonly detail?: string;
  readonly field?: string;
  readonly conflicting_rule_id?: unknown;
}

/** Parses the body of an error answer. */
export function problemOf(answer: Answer): Problem {
  try {
    const body = JSON.parse(answer.text) as ProblemBody;
    const id = body.conflicting_rule_id;
    const conflictingRuleId = typeof id === "number" && Number.isSafeInteger(id) ? id : undefined;
    return new Problem(answer.status, body.detail ?? body.title ?? answer.text, body.field, conflictingRuleId);
  } catch {
    return new Problem(answer.status, answer.text || `the service answered ${answer.status}`, undefined);
  }
}
