/** The request to explain: form fields, parameters of the address, and body. */

/** The most attributes in the form: the default maximum of the service. */
export const ATTRIBUTES_MAX = 32;

/** The standard fields of a request, by their names in the API. */
export const FIELDS = ["user_id", "ip", "endpoint", "method", "plan", "cost"] as const;
export type FieldName = (typeof FIELDS)[number];

/** Prefix of other attributes in the address, to keep them apart from the fields. */
const ATTRIBUTE = "attr.";

export interface Attribute {
  readonly name: string;
  readonly value: string;
}

/** Texts of the form. An empty text is not sent. */
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

/** Errors by field: `ip`, `attributes.tenant`, or `attributes`. */
export type Errors = Readonly<Record<string, string>>;

/** Parses the parameters of an address. */
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

/** The parameters of an address. Empty fields and attributes without a name are left out. */
export function paramsOf(fields: RequestFields): URLSearchParams {
  const params = new URLSearchParams();
  for (const name of FIELDS) if (fields[name] !== "") params.append(name, fields[name]);
  for (const { name, value } of fields.attributes) if (name !== "") params.append(`${ATTRIBUTE}${name}`, value);
  return params;
}

/** The body to send, or the errors that prevent sending it. The service checks the rest. */
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
  // A plain object would not treat `__proto__` as a key.
  const attributes = new Map<string, string>();
  for (const { name, value } of fields.attributes) {
    if (name === "" && value === "") continue;
    if (name === "") errors["attributes"] = "enter a name for every attribute";
    else if (attributes.has(name)) errors[`attributes.${name}`] = "is duplicated";
    attributes.set(name, value);
  }
  if (attributes.size > 0) body.attributes = Object.fromEntries(attributes);
  return Object.keys(errors).length > 0 ? { errors } : { body };
}

/** The error of the service at the field that it names; nothing if the form has no such field. */
export function errorsOf(problem: { readonly field: string | undefined; readonly detail: string }): Errors {
  const { field, detail } = problem;
  if (field === undefined) return {};
  const isKnown =
    (FIELDS as readonly string[]).includes(field) || field === "attributes" || field.startsWith("attributes.");
  if (!isKnown) return {};
  // The label names the field already.
  return { [field]: detail.startsWith(`${field}: `) ? detail.slice(field.length + 2) : detail };
}
