/** Form of a caller, and the bodies that it sends. */

import type { Problem } from "../api/client.ts";
import type { Caller, RightName } from "../api/types.ts";

/** Rights with their effect. */
export const RIGHTS: readonly (readonly [RightName, string])[] = [
  ["check", "check requests against the rules"],
  ["take", "take tokens from buckets without a rule"],
  ["refund", "give tokens back"],
  ["authorize", "decide for a proxy (/v1/authorize)"],
];

/** Expiry: that of the caller, none, or after a time from now. */
export type Expiry = "keep" | "never" | "in";

export interface CallerForm {
  readonly name: string;
  readonly rights: readonly RightName[];
  readonly namespace: string;
  readonly certificate: string;
  readonly hasToken: boolean;
  readonly expiry: Expiry;
  /** Time from now, such as `90 days`. */
  readonly expiresIn: string;
}

export const NEW_FORM: CallerForm = {
  name: "",
  rights: ["check"],
  namespace: "",
  certificate: "",
  hasToken: true,
  expiry: "never",
  expiresIn: "90 days",
};

export function formOf({ name, rights, namespace, certificate }: Caller): CallerForm {
  return { ...NEW_FORM, name, rights, namespace: namespace ?? "", certificate: certificate ?? "", expiry: "keep" };
}

/** Body of a request, as typed: the service validates it. */
export type Body = Readonly<Record<string, unknown>>;

export function createBody(form: CallerForm): Body {
  const { namespace, certificate } = textsOf(form);
  return {
    name: form.name.trim(),
    rights: form.rights,
    ...(namespace === null ? {} : { namespace }),
    ...(certificate === null ? {} : { certificate }),
    ...(form.expiry === "in" ? { expires_in: form.expiresIn.trim() } : {}),
    ...(form.hasToken ? {} : { token: false }),
  };
}

/** The changed fields only: others may have been changed meanwhile. */
export function changeBody(form: CallerForm, caller: Caller): Body {
  const { namespace, certificate } = textsOf(form);
  const isSame = form.rights.toSorted().join() === caller.rights.toSorted().join();
  return {
    ...(isSame ? {} : { rights: form.rights }),
    ...(namespace === caller.namespace ? {} : { namespace }),
    ...(certificate === caller.certificate ? {} : { certificate }),
    ...(form.expiry === "never" && caller.expires_at !== null ? { expires_at: null } : {}),
    ...(form.expiry === "in" ? { expires_in: form.expiresIn.trim() } : {}),
  };
}

function textsOf({ namespace, certificate }: CallerForm): { namespace: string | null; certificate: string | null } {
  return { namespace: namespace.trim() || null, certificate: certificate.trim() || null };
}

/** `rights` with one of them added or removed, in the order of `RIGHTS`. */
export function withRight(rights: readonly RightName[], right: RightName, isOn: boolean): RightName[] {
  return RIGHTS.map(([name]) => name).filter((name) => (name === right ? isOn : rights.includes(name)));
}

const PLACES = ["name", "rights", "namespace", "certificate", "token", "expires"] as const;

/** A field of the form, or the form as a whole. */
export type Place = (typeof PLACES)[number] | "form";

/** The place of an error. The service names `rights[0]` for a right, and `expires_in` or `expires_at`. */
export function placeOf({ field = "" }: Pick<Problem, "field">): Place {
  const name = field.replace(/\[\d+\]$/, "").replace(/^expires_(in|at)$/, "expires");
  return PLACES.find((place) => place === name) ?? "form";
}

/** The message without the name of the field, which is its label. */
export function messageOf({ field, detail }: Pick<Problem, "field" | "detail">): string {
  return field !== undefined && detail.startsWith(`${field}: `) ? detail.slice(field.length + 2) : detail;
}
