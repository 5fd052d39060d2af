/** Setting and deleting overrides, and never one that somebody else has changed in the meantime. */

import { call, Problem } from "../../api/client.ts";
import type { Override, OverrideList, SetOverride } from "../../api/types.ts";

/** The most overrides of one subject that are shown. */
export const OVERRIDES_MAX = 50;

/** What an override is to say, as it was typed: the service says what is wrong with it. */
export type OverrideBody = Readonly<Record<string, unknown>>;

/** Somebody has made, changed or deleted it since it was read. */
export class Conflict extends Error {
  constructor(
    /** As it is now; undefined if it is gone. */
    readonly now: Override | undefined,
  ) {
    super("somebody else was faster");
    this.name = "Conflict";
  }
}

export async function listOverrides(subject: string, ruleId?: number, signal?: AbortSignal): Promise<Override[]> {
  const query = { subject, rule_id: ruleId, limit: OVERRIDES_MAX };
  const list = await call<OverrideList>("GET", "/v1/overrides", { query, ...(signal && { signal }) });
  return list.overrides;
}

/**
 * Sets the override of a subject of a rule. `read` is the one that is known, if there is one. Throws a `Conflict` if
 * that is not what there is, and a `Problem` if it is refused.
 */
export async function setOverride(
  ruleId: number,
  subject: string,
  body: OverrideBody,
  read: Override | undefined,
): Promise<SetOverride> {
  if (read !== undefined) {
    return guarded(ruleId, subject, () =>
      call<SetOverride>("PUT", `/v1/overrides/${read.override_id}`, { body: body, ifMatch: read.version }),
    );
  }
  // A POST changes what is there already: so look first.
  const [found] = await listOverrides(subject, ruleId);
  if (found !== undefined) throw new Conflict(found);
  return call<SetOverride>("POST", "/v1/overrides", { body: { rule_id: ruleId, subject, ...body } });
}

/** Deletes it as it was read: throws a `Conflict` if it is another one by now. One that is gone is as good as deleted. */
export async function deleteOverride(read: Override): Promise<void> {
  await guarded(read.rule_id, read.subject, async () => {
    try {
      await call<void>("DELETE", `/v1/overrides/${read.override_id}`, { ifMatch: read.version });
    } catch (error) {
      if (!(error instanceof Problem && error.status === 404)) throw error;
    }
  });
}

async function guarded<T>(ruleId: number, subject: string, change: () => Promise<T>): Promise<T> {
  try {
    return await change();
  } catch (error) {
    if (!(error instanceof Problem && (error.status === 412 || error.status === 404))) throw error;
    const [now] = await listOverrides(subject, ruleId);
    throw new Conflict(now);
  }
}
