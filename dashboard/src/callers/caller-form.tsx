/** Fields of a caller, for creating and changing one. */

import type { JSX } from "preact";
import type { Problem } from "../api/client.ts";
import { Field } from "../ui/field.tsx";
import { fieldMessage } from "../ui/field-message.ts";
import { Notice } from "../ui/notice.tsx";
import { TextField } from "../ui/text-field.tsx";
import { WhyField } from "../ui/why-field.tsx";
import { type CallerForm, type Expiry, messageOf, type Place, placeOf, RIGHTS, withRight } from "./form.ts";

interface CallerFieldsProps {
  readonly form: CallerForm;
  readonly set: (changed: Partial<CallerForm>) => void;
  readonly why: string;
  readonly onWhy: (why: string) => void;
  readonly problem: Problem | undefined;
  /** Current expiry of a caller that is changed, as text; undefined for a new one. */
  readonly expiryNow: string | undefined;
}

export function CallerFields({ form, set, why, onWhy, problem, expiryNow }: CallerFieldsProps): JSX.Element {
  const errorOf = (place: Place) =>
    problem !== undefined && placeOf(problem) === place ? messageOf(problem) : undefined;
  const isNew = expiryNow === undefined;
  return (
    <>
      {errorOf("form") !== undefined && <Notice kind="error">{errorOf("form")}</Notice>}
      {isNew && (
        <TextField
          label="Name"
          placeholder="checkout"
          value={form.name}
          error={errorOf("name")}
          onValue={(name) => set({ name })}
        />
      )}
      <RightFields form={form} set={set} error={errorOf("rights")} />
      <Field
        label="Namespace (optional)"
        hint="Keeps its keys apart from those of others; rules can match it."
        error={errorOf("namespace")}
      >
        {(input) => (
          <input
            {...input}
            class="input mono"
            autocomplete="off"
            spellcheck={false}
            value={form.namespace}
            onInput={(event) => set({ namespace: event.currentTarget.value })}
          />
        )}
      </Field>
      <Field
        label="Client certificate (optional)"
        hint="A subject alternative name: checkout.example, or a URI."
        error={errorOf("certificate")}
      >
        {(input) => (
          <input
            {...input}
            class="input mono"
            autocomplete="off"
            spellcheck={false}
            value={form.certificate}
            onInput={(event) => set({ certificate: event.currentTarget.value })}
          />
        )}
      </Field>
      {isNew && <TokenBox form={form} set={set} error={errorOf("token")} />}
      <ExpiryFields form={form} set={set} error={errorOf("expires")} expiryNow={expiryNow} />
      <WhyField value={why} onValue={onWhy} />
    </>
  );
}

type PartProps = Pick<CallerFieldsProps, "form" | "set"> & { readonly error: string | undefined };

function RightFields({ form, set, error }: PartProps): JSX.Element {
  return (
    <fieldset class="caller-rights" aria-describedby={error === undefined ? undefined : "caller-rights-error"}>
      <legend class="label">It may</legend>
      {RIGHTS.map(([right, effect]) => (
        <label key={right} class="caller-box">
          <input
            type="checkbox"
            checked={form.rights.includes(right)}
            aria-invalid={error !== undefined}
            onChange={(event) => set({ rights: withRight(form.rights, right, event.currentTarget.checked) })}
          />
          <span>
            <b>{right}</b> <span class="muted">{effect}</span>
          </span>
        </label>
      ))}
      {error !== undefined && (
        <div id="caller-rights-error" class="caller-error">
          {fieldMessage(error)}
        </div>
      )}
    </fieldset>
  );
}

function TokenBox({ form, set, error }: PartProps): JSX.Element {
  return (
    <div>
      <label class="caller-box">
        <input
          type="checkbox"
          checked={form.hasToken}
          onChange={(event) => set({ hasToken: event.currentTarget.checked })}
        />
        <span>
          Create a token <span class="muted">Without one, it needs a client certificate.</span>
        </span>
      </label>
      {error !== undefined && <div class="caller-error">{fieldMessage(error)}</div>}
    </div>
  );
}

function ExpiryFields({ form, set, error, expiryNow }: PartProps & Pick<CallerFieldsProps, "expiryNow">): JSX.Element {
  return (
    <div class="form-fields">
      <Field label="Expires">
        {(input) => (
          <select
            {...input}
            class="input"
            value={form.expiry}
            onChange={(event) => set({ expiry: event.currentTarget.value as Expiry })}
          >
            {expiryNow !== undefined && <option value="keep">unchanged: {expiryNow}</option>}
            <option value="never">never</option>
            <option value="in">after a time from now</option>
          </select>
        )}
      </Field>
      {form.expiry === "in" && (
        <Field label="Expires in" hint="8 hours, 90 days" error={error}>
          {(input) => (
            <input
              {...input}
              class="input"
              value={form.expiresIn}
              onInput={(event) => set({ expiresIn: event.currentTarget.value })}
            />
          )}
        </Field>
      )}
    </div>
  );
}
