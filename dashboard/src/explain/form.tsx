/** Form for the request to explain. */

import type { JSX } from "preact";
import { useId, useRef } from "preact/hooks";
import { hrefOf } from "../route.ts";
import { fieldMessage } from "../ui/field-message.ts";
import { Suggestions, TextField, type TextProps } from "../ui/text-field.tsx";
import type { Hints } from "./hints.ts";
import { ATTRIBUTES_MAX, type Attribute, type Errors, type FieldName, type RequestFields } from "./request.ts";

interface FormProps {
  readonly fields: RequestFields;
  readonly onChange: (fields: RequestFields) => void;
  readonly errors: Errors;
  readonly hints: Hints;
}

/** Requests to which the starter rules apply. */
const EXAMPLES: readonly (readonly [string, string])[] = [
  ["a login", hrefOf("explain", { ip: "203.0.113.9", endpoint: "/login", method: "POST" })],
  ["a search on the free plan", hrefOf("explain", { user_id: "42", endpoint: "/search", method: "GET", plan: "free" })],
  [
    "a payment",
    hrefOf("explain", { user_id: "42", ip: "203.0.113.9", endpoint: "/payment", method: "POST", plan: "pro" }),
  ],
];

export function RequestForm({ fields, onChange, errors, hints }: FormProps): JSX.Element {
  const text = (name: FieldName, label: string, more: TextProps = {}) => (
    <TextField
      key={name}
      label={label}
      value={fields[name]}
      onValue={(value) => onChange({ ...fields, [name]: value })}
      error={errors[name]}
      {...more}
    />
  );
  return (
    <form class="panel explain-form" aria-label="Request" onSubmit={(event) => event.preventDefault()}>
      <div class="explain-head">
        <h2>Request</h2>
        <a class="button quiet" href={hrefOf("explain")}>
          Clear
        </a>
      </div>
      <div class="explain-fields">
        {text("user_id", "User id", { placeholder: "42" })}
        {text("ip", "IP address", { placeholder: "203.0.113.9" })}
        {text("endpoint", "Endpoint", { placeholder: "/login", suggestions: hints.endpoints })}
        {text("method", "Method", { placeholder: "POST", suggestions: hints.methods })}
        {text("plan", "Plan", { placeholder: "none", suggestions: hints.plans })}
        {text("cost", "Cost", { placeholder: "1", inputMode: "numeric" })}
      </div>
      <Attributes fields={fields} onChange={onChange} errors={errors} names={hints.attributes} />
      <p class="muted small">
        All fields are optional. Examples:{" "}
        {EXAMPLES.map(([name, href], index) => (
          <span key={name}>
            {index > 0 && ", "}
            <a href={href}>{name}</a>
          </span>
        ))}
        .
      </p>
    </form>
  );
}

interface AttributesProps extends Omit<FormProps, "hints"> {
  readonly names: readonly string[];
}

function Attributes({ fields, onChange, errors, names }: AttributesProps): JSX.Element {
  const { attributes } = fields;
  const list = useId();
  const add = useRef<HTMLButtonElement>(null);
  const set = (attributes: readonly Attribute[]) => onChange({ ...fields, attributes });
  const change = (index: number, attribute: Partial<Attribute>) => {
    set(attributes.map((before, at) => (at === index ? { ...before, ...attribute } : before)));
  };
  const remove = (index: number) => {
    set(attributes.filter((_, at) => at !== index));
    // The button that had the focus is removed.
    add.current?.focus();
  };
  return (
    <fieldset class="explain-attributes">
      <legend class="label">Other attributes</legend>
      {attributes.map((attribute, index) => {
        const error = attribute.name === "" ? undefined : errors[`attributes.${attribute.name}`];
        return (
          <div class="explain-attribute" key={index}>
            <input
              class="input mono"
              aria-label={`Name of attribute ${index + 1}`}
              aria-invalid={error !== undefined}
              placeholder="name"
              autocomplete="off"
              autocapitalize="off"
              spellcheck={false}
              list={list}
              value={attribute.name}
              onInput={(event) => change(index, { name: event.currentTarget.value })}
            />
            <input
              class="input mono"
              aria-label={`Value of attribute ${index + 1}`}
              placeholder="value"
              autocomplete="off"
              autocapitalize="off"
              spellcheck={false}
              value={attribute.value}
              onInput={(event) => change(index, { value: event.currentTarget.value })}
            />
            <button
              type="button"
              class="button quiet"
              aria-label={`Remove attribute ${index + 1}`}
              onClick={() => remove(index)}
            >
              ✕
            </button>
            {error !== undefined && <div class="error">{fieldMessage(error)}</div>}
          </div>
        );
      })}
      {errors["attributes"] !== undefined && <div class="error">{fieldMessage(errors["attributes"])}</div>}
      <Suggestions id={list} texts={names} />
      <div>
        <button
          type="button"
          class="button"
          ref={add}
          disabled={attributes.length >= ATTRIBUTES_MAX}
          onClick={() => set([...attributes, { name: "", value: "" }])}
        >
          Add attribute
        </button>
      </div>
    </fieldset>
  );
}
