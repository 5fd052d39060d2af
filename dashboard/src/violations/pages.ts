/** Pages of violations. */

import { call } from "../api/client.ts";
import type { ViolationList } from "../api/types.ts";
import type { Query } from "../ui/export-pages.ts";

/** Loads a page of violations, newest first. */
export function listViolations(
  query: Query,
  after: string | undefined,
  limit: number,
  signal: AbortSignal,
): Promise<ViolationList> {
  return call("GET", "/v1/violations", { query: { ...query, after, limit }, signal });
}
