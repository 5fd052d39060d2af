/** Asking the service. */

import { currentToken, refuseToken } from "../session.ts";
import { noteDate } from "./clock.ts";

/** How long an answer may take. */
const TIMEOUT_MS = 15_000;

/** An answer, whatever its status. */
export interface Answer {
  readonly status: number;
  readonly statusText: string;
  /** In the order of their names. */
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
  readonly accept?: string;
  readonly signal?: AbortSignal;
  /** A token to try, instead of the one that one has signed in with. */
  readonly token?: string;
}

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** The path with its query; parameters that are undefined or empty are left out. */
export function urlOf(path: string, query: Options["query"] = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") params.append(name, String(value));
  }
  const text = params.toString();
  return text === "" ? path : `${path}?${text}`;
}

/** The headers of a request, with the token that one has signed in with. */
export function headersOf(options: Options): Record<string, string> {
  const headers: Record<string, string> = {};
  if (options.accept !== undefined) headers["accept"] = options.accept;
  if (options.body !== undefined) headers["content-type"] = "application/json";
  if (options.ifMatch !== undefined) headers["if-match"] = `"${options.ifMatch}"`;
  const token = options.token ?? currentToken();
  if (token !== "") headers["authorization"] = `Bearer ${token}`;
  return headers;
}

/** Asks, and returns the answer as it is. Throws a `Problem` with status 0 if there is none. */
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
    // Somebody may have signed in while this was on its way.
    if (response.status === 401 && token === currentToken()) refuseToken();
    return { status: response.status, statusText: response.statusText, headers: [...response.headers], text };
  } catch (error) {
    if (options.signal?.aborted === true) throw error;
    throw new Problem(0, "the service does not answer: is it running?", undefined);
  }
}

/** Asks, and returns what the answer says. Throws a `Problem` if it is a refusal. */
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
