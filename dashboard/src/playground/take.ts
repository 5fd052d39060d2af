/** The endpoint of the playground, and its curl command. */

import { urlOf } from "../api/client.ts";
import { curlOf } from "../ui/curl.ts";
import type { TakeBody } from "./lane.ts";

export const TAKE_PATH = "/v1/take";
/** Denials answer 429, as a client behind a proxy would see. */
export const TAKE_QUERY = { deny: 429 };

/** The curl command of a request, without a token: it may be pasted anywhere. */
export function takeCurl(origin: string, body: TakeBody): string {
  const url = `${origin}${urlOf(TAKE_PATH, TAKE_QUERY)}`;
  return curlOf("POST", url, { "content-type": "application/json" }, body);
}
