/** The request that is asked about: as it is typed, as it is in the address, and as it is sent. */

/** More rows than these are not offered: the service takes 32 attributes unless it is told otherwise. */
export const ATTRIBUTES_MAX = 32;

/** The fields that every request may have, by the names that the service has for them. */
export const FIELDS = ["user_id", "ip", "endpoint", "method", "plan", "cost"] as const;
export type FieldName = (typeof FIELDS)[number];

/** What other attributes are called in the address, so that none is taken for a field. */
const ATTRIBUTE = "attr.";

export interface Attribute {
  readonly name: string;
  readonly value: string;
}

/** What has been typed. Empty means not given. */
export type RequestFields = Readonly<Record<FieldName, string>> & { readonly attributes: readonly Attribute[] };

/** The body of a check. */
export interface Body {
  user_id?: string;
  ip?: string;
  endpoint?: string;
  method?: string;
  plan?: string;
  cost?: number;
  attributes?: Record<string, string>;
}

/** What is wrong, by the field that it is wrong with: `ip`, `attributes.tenant`, or `attributes`. */
export type Errors = Readonly<Record<string, string>>;

/** Reads an address. */
export function fieldsOf(params: URLSearchParams): RequestFields {
  const attributes: Attribute[] = [];
  for (const [name, value] of params) {
    if (!name.startsWith(ATTRIBUTE) || attributes.length === ATTRIBUTES_MAX) continue;
    attributes.push({ name: name.slice(ATTRIBUTE.length), value });
  }
  const field = (name: FieldName) => params.get(name) ?? "";
  return {
    user_id: field("user_id"),
    ip: field("ip"),
    endpoint: field("endpoint"),
    method: field("method"),
    plan: field("plan"),
    cost: field("cost"),
    attributes,
  };
}

/** Writes an address. What is empty is left out, and so is an attribute without a name. */
export function paramsOf(fields: RequestFields): URLSearchParams {
  const params = new URLSearchParams();
  for (const name of FIELDS) if (fields[name] !== "") params.append(name, fields[name]);
  for (const { name, value } of fields.attributes) if (name !== "") params.append(`${ATTRIBUTE}${name}`, value);
  return params;
}

/** The body to send, or what keeps it from being sent. The service judges the rest. */
export function bodyOf(fields: RequestFields): { readonly body: Body } | { readonly errors: Errors } {
  const errors: Record<string, string> = {};
  const body: Body = {};
  for (const name of ["user_id", "ip", "endpoint", "method", "plan"] as const) {
    if (fields[name] !== "") body[name] = fields[name];
  }
  const cost = fields.cost.trim();
  if (cost !== "") {
    body.cost = Number(cost);
    if (!/^\d+$/.test(cost)) errors["cost"] = "is not a whole number";
    else if (!Number.isSafeInteger(body.cost)) errors["cost"] = "is too large";
  }
  // A plain object would take `__proto__` for something else.
  const attributes = new Map<string, string>();
  for (const { name, value } of fields.attributes) {
    if (name === "" && value === "") continue;
    if (name === "") errors["attributes"] = "every attribute needs a name";
    else if (attributes.has(name)) errors[`attributes.${name}`] = "is there twice";
    attributes.set(name, value);
  }
  if (attributes.size > 0) body.attributes = Object.fromEntries(attributes);
  return Object.keys(errors).length > 0 ? { errors } : { body };
}

/** What the service refused, at the field that it names; nothing if the form has no such field. */
export function errorsOf(problem: { readonly field: string | undefined; readonly detail: string }): Errors {
  const { field, detail } = problem;
  if (field === undefined) return {};
  const isKnown =
    (FIELDS as readonly string[]).includes(field) || field === "attributes" || field.startsWith("attributes.");
  if (!isKnown) return {};
  // The field is beside it already.
  return { [field]: detail.startsWith(`${field}: `) ? detail.slice(field.length + 2) : detail };
}
