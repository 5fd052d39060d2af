/** Dialogs that create and change a caller. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Problem } from "../api/client.ts";
import type { Caller, CreatedCaller } from "../api/types.ts";
import { Dialog } from "../ui/dialog.tsx";
import { asProblem } from "../ui/load.ts";
import { Notice } from "../ui/notice.tsx";
import { changeCaller, createCaller } from "./api.ts";
import { CallerFields } from "./caller-form.tsx";
import { type CallerForm, changeBody, createBody, formOf, NEW_FORM } from "./form.ts";
import { utc } from "./words.ts";

interface CreateProps {
  /** True if there is no caller yet. */
  readonly isFirst: boolean;
  readonly onClose: () => void;
  readonly onCreated: (created: CreatedCaller) => void;
}

export function CreateCaller({ isFirst, onClose, onCreated }: CreateProps): JSX.Element {
  return (
    <EditDialog
      title="New caller"
      start={NEW_FORM}
      expiryNow={undefined}
      submit="Create caller"
      notice={isFirst ? <FirstNotice /> : undefined}
      onClose={onClose}
      onSubmit={async (form, why) => onCreated(await createCaller(createBody(form), why))}
    />
  );
}

function FirstNotice(): JSX.Element {
  return (
    <Notice kind="warning">
      This is the first caller. As soon as it exists, requests without a caller are refused, on this machine as well,
      unless <code>listen.anonymous</code> is <code>true</code>.
    </Notice>
  );
}

interface ChangeProps {
  readonly caller: Caller;
  readonly onClose: () => void;
  readonly onChanged: (caller: Caller) => void;
}

export function ChangeCaller({ caller, onClose, onChanged }: ChangeProps): JSX.Element {
  return (
    <EditDialog
      title={`Change ${caller.name}`}
      start={formOf(caller)}
      expiryNow={caller.expires_at === null ? "never" : utc(caller.expires_at)}
      submit="Save"
      notice={undefined}
      onClose={onClose}
      onSubmit={async (form, why) => onChanged(await changeCaller(caller.name, changeBody(form, caller), why))}
    />
  );
}

interface EditDialogProps {
  readonly title: string;
  readonly start: CallerForm;
  readonly expiryNow: string | undefined;
  /** Text of the button. */
  readonly submit: string;
  readonly notice: JSX.Element | undefined;
  readonly onClose: () => void;
  /** Saves the caller; throws a `Problem` if the service refuses it. */
  readonly onSubmit: (form: CallerForm, why: string) => Promise<void>;
}

function EditDialog(props: EditDialogProps): JSX.Element {
  const [form, setForm] = useState(props.start);
  const [why, setWhy] = useState("");
  const [problem, setProblem] = useState<Problem>();
  const [isBusy, setBusy] = useState(false);
  const element = useRef<HTMLFormElement>(null);
  // After a failed attempt, the focus goes to the field with the error.
  useEffect(() => element.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus(), [problem]);
  const send = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    try {
      await props.onSubmit(form, why);
    } catch (thrown) {
      setProblem(asProblem(thrown));
      setBusy(false);
    }
  };
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <form ref={element} class="caller-form" onSubmit={send} noValidate>
        {props.notice}
        <CallerFields
          form={form}
          set={(changed) => setForm((form) => ({ ...form, ...changed }))}
          why={why}
          onWhy={setWhy}
          problem={problem}
          expiryNow={props.expiryNow}
        />
        <div class="row">
          <button type="submit" class="button primary" disabled={isBusy}>
            {props.submit}
          </button>
          <button type="button" class="button" onClick={(event) => event.currentTarget.closest("dialog")?.close()}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  );
}
