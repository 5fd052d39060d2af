/** Parameters of the live view's address. */

import type { LimitedSubject } from "../api/types.ts";
import { hrefOf } from "../route.ts";
import { otherPlaceholders } from "../ui/pattern.ts";
import { isPseudonym } from "../ui/pseudonym.ts";

/** Grouping of the charts. */
export type By = "tier" | "rule";

/** The subject whose panel is open. */
export interface PanelTarget {
  readonly ruleId: number;
  readonly subject: string;
  /** Known values of other placeholders, by name. */
  readonly known: Readonly<Record<string, string>>;
}

const BY = "by";
const RULE = "rule";
const SUBJECT = "subject";

export function byOf(params: URLSearchParams): By {
  return params.get(BY) === "rule" ? "rule" : "tier";
}

/** The panel that an address opens, if any. */
export function panelOf(params: URLSearchParams): PanelTarget | undefined {
  const ruleId = Number(params.get(RULE) ?? "");
  const subject = params.get(SUBJECT);
  if (!Number.isSafeInteger(ruleId) || ruleId < 1 || subject === null) return undefined;
  const known = [...params].filter(([name]) => name !== BY && name !== RULE && name !== SUBJECT);
  return { ruleId, subject, known: Object.fromEntries(known) };
}

/** The address of the view with this grouping and panel. */
export function liveHref(by: By, opened?: PanelTarget): string {
  const params = new URLSearchParams();
  if (by === "rule") params.set(BY, by);
  if (opened !== undefined) {
    params.set(RULE, String(opened.ruleId));
    params.set(SUBJECT, opened.subject);
    for (const [name, value] of Object.entries(opened.known)) {
      if (name !== BY && name !== RULE && name !== SUBJECT) params.set(name, value);
    }
  }
  return hrefOf("live", params);
}

/** Columns of a row that identify its buckets. */
type Row = Pick<LimitedSubject, "rule_id" | "key_pattern" | "subject" | "endpoint" | "user_id" | "ip_address">;

/** The panel of a row, with the values of other placeholders unless they are pseudonyms. */
export function panelOfRow({ rule_id, key_pattern, subject, endpoint, user_id, ip_address }: Row): PanelTarget {
  const all = new Map(Object.entries({ endpoint, user_id, ip: ip_address }));
  const known: Record<string, string> = {};
  for (const name of otherPlaceholders(key_pattern)) {
    const value = all.get(name);
    if (value !== null && value !== undefined && !isPseudonym(value, name)) known[name] = value;
  }
  return { ruleId: rule_id, subject, known };
}
