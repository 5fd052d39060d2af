/** Where the playground asks, and the same for a shell. */

import { urlOf } from "../api/client.ts";
import { curlOf } from "../ui/curl.ts";
import type { TakeBody } from "./lane.ts";

export const TAKE_PATH = "/v1/take";
/** A denial has the status that a client behind a proxy would see. */
export const TAKE_QUERY = { deny: 429 };

/** The request, for whoever wants to send it by hand. The path needs no token. */
export function takeCurl(origin: string, body: TakeBody): string {
  const url = `${origin}${urlOf(TAKE_PATH, TAKE_QUERY)}`;
  return curlOf("POST", url, { "content-type": "application/json" }, body);
}
