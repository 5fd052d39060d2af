/** Requests about callers. */

import { call, request } from "../api/client.ts";
import type { Caller, CallerList, CreatedCaller } from "../api/types.ts";
import type { Body } from "./form.ts";

export interface Callers {
  /** Sorted by name. */
  readonly callers: readonly Caller[];
  /** False if the token may only read. */
  readonly isChangeable: boolean;
}

export async function loadCallers(signal: AbortSignal): Promise<Callers> {
  const [{ callers }, isChangeable] = await Promise.all([
    call<CallerList>("GET", "/v1/callers", { signal }),
    mayChange(signal),
  ]);
  return { callers: callers.toSorted((one, other) => (one.name < other.name ? -1 : 1)), isChangeable };
}

/** Returns whether the token may change callers. The service checks that before the body of this dry run. */
async function mayChange(signal: AbortSignal): Promise<boolean> {
  const { status } = await request("POST", "/v1/callers", { query: { dry_run: "true" }, body: {}, signal });
  return status !== 403;
}

export function createCaller(body: Body, reason: string): Promise<CreatedCaller> {
  return call("POST", "/v1/callers", { body, reason });
}

export function changeCaller(name: string, body: Body, reason: string): Promise<Caller> {
  return call("PATCH", pathOf(name), { body, reason });
}

export function revokeCaller(name: string, reason: string): Promise<void> {
  return call("DELETE", pathOf(name), { reason });
}

function pathOf(name: string): string {
  return `/v1/callers/${encodeURIComponent(name)}`;
}
