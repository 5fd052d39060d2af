/** Setting and deleting overrides, with detection of concurrent changes. */

import { call, Problem } from "../../api/client.ts";
import type { Override, OverrideList, SetOverride } from "../../api/types.ts";

/** The most overrides shown for one subject. */
export const OVERRIDES_MAX = 50;

/** Body of an override, as typed: the service validates it. */
export type OverrideBody = Readonly<Record<string, unknown>>;

/** The override was created, changed or deleted since it was read. */
export class Conflict extends Error {
  constructor(
    /** The current override; undefined if it was deleted. */
    readonly now: Override | undefined,
    /** True if there was none when it was read. */
    readonly isFirst = false,
  ) {
    super("the override was changed meanwhile");
    this.name = "Conflict";
  }
}

export async function listOverrides(subject: string, ruleId?: number, signal?: AbortSignal): Promise<Override[]> {
  const query = { subject, rule_id: ruleId, limit: OVERRIDES_MAX };
  const list = await call<OverrideList>("GET", "/v1/overrides", { query, ...(signal && { signal }) });
  return list.overrides;
}

/**
 * Sets the override of a subject of a rule. `read` is the override as it was read, if there is one. Throws a `Conflict`
 * if it has changed since, and a `Problem` if the service refuses the new one.
 */
export async function setOverride(
  ruleId: number,
  subject: string,
  body: OverrideBody,
  read: Override | undefined,
): Promise<SetOverride> {
  const reason = typeof body["reason"] === "string" ? body["reason"] : undefined;
  if (read !== undefined) {
    return guarded(ruleId, subject, () =>
      call<SetOverride>("PUT", `/v1/overrides/${read.override_id}`, { body, reason, ifMatch: read.version }),
    );
  }
  return guarded(
    ruleId,
    subject,
    () =>
      call<SetOverride>("POST", "/v1/overrides", {
        body: { rule_id: ruleId, subject, ...body },
        reason,
        ifNoneMatch: true,
      }),
    true,
  );
}

/** Deletes an override. Throws a `Conflict` if it has changed since it was read; a missing one counts as deleted. */
export async function deleteOverride(read: Override, reason?: string): Promise<void> {
  await guarded(read.rule_id, read.subject, async () => {
    try {
      await call<void>("DELETE", `/v1/overrides/${read.override_id}`, { ifMatch: read.version, reason });
    } catch (error) {
      if (!(error instanceof Problem && error.status === 404)) throw error;
    }
  });
}

/** Makes a change under a condition; throws a `Conflict` with the current override if it does not hold. */
async function guarded<T>(ruleId: number, subject: string, change: () => Promise<T>, isFirst = false): Promise<T> {
  try {
    return await change();
  } catch (error) {
    // Without an override that was read, 404 says that the rule does not exist.
    const isConflict = error instanceof Problem && (error.status === 412 || (error.status === 404 && !isFirst));
    if (!isConflict) throw error;
    const [now] = await listOverrides(subject, ruleId);
    throw new Conflict(now, isFirst);
  }
}
