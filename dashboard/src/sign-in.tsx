/** Sign-in form, for a service that requires a token. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { call } from "./api/client.ts";
import { focusHeading } from "./focus.ts";
import { hrefOf } from "./route.ts";
import { currentToken, isToken, setToken } from "./session.ts";
import { Field } from "./ui/field.tsx";
import { asProblem } from "./ui/load.ts";

const NO_TOKEN = "is not a token: it must consist of visible ASCII characters, without spaces";

/**
 * The sign-in form. The view behind it stays mounted, hidden, and so does a dialog that is open. Above a modal dialog
 * the form is a modal dialog itself: nothing else could have the focus.
 */
export function SignIn(): JSX.Element {
  const [isOverDialog] = useState(() => document.querySelector("dialog[open]") !== null);
  const dialog = useRef<HTMLDialogElement>(null);
  useReturnOfFocus();
  useEffect(() => dialog.current?.showModal(), []);
  if (!isOverDialog) return <SignInForm />;
  return (
    <dialog ref={dialog} class="dialog" aria-label="Sign in" onClose={() => dialog.current?.showModal()}>
      <SignInForm />
    </dialog>
  );
}

/** Returns the focus to where it was when the form closes, or else to the heading of the view. */
function useReturnOfFocus(): void {
  useLayoutEffect(() => {
    const before = document.activeElement;
    return () => {
      // The view is visible only after the next frame.
      requestAnimationFrame(() => {
        const wasSomewhere = before instanceof HTMLElement && before !== document.body && before.isConnected;
        if (wasSomewhere) before.focus();
        else focusHeading();
      });
    };
  }, []);
}

function SignInForm(): JSX.Element {
  return (
    <div class="panel sign-in">
      <h1>{currentToken() === "" ? "Sign in" : "Sign in again"}</h1>
      <p class="muted">
        {currentToken() === "" ? "This view needs a token." : "The token is no longer valid."} Use the one of the
        setting <code>admin.token</code>, or create one with <code>sluicegate tokens create</code>. It is stored for
        this tab only.
      </p>
      <TokenForm>
        <a class="button quiet" href={hrefOf("playground")}>
          Go to the playground
        </a>
      </TokenForm>
    </div>
  );
}

interface TokenFormProps {
  readonly onSignedIn?: () => void;
  /** Further buttons. */
  readonly children?: ComponentChildren;
}

/** Field for the token, focused when it is mounted. */
export function TokenForm({ onSignedIn, children }: TokenFormProps): JSX.Element {
  const [text, setText] = useState("");
  const [error, setError] = useState<string>();
  const [isAsking, setIsAsking] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  const signIn = async (event: Event) => {
    event.preventDefault();
    const token = text.trim();
    if (token === "") return;
    if (!isToken(token)) {
      setError(NO_TOKEN);
      input.current?.focus();
      return;
    }
    setIsAsking(true);
    try {
      // Answered from the rules in memory, so signing in works while the database is down.
      await call("POST", "/v1/explain", { body: {}, token });
      setToken(token);
      onSignedIn?.();
    } catch (thrown) {
      setError(asProblem(thrown).detail);
      setIsAsking(false);
      input.current?.focus();
    }
  };
  return (
    <form class="token-form" onSubmit={signIn}>
      <Field label="Token" error={error}>
        {(props) => (
          <input
            {...props}
            ref={input}
            class="input mono"
            type="password"
            autocomplete="off"
            value={text}
            onInput={(event) => {
              setText(event.currentTarget.value);
              setError(undefined);
            }}
          />
        )}
      </Field>
      <div class="row">
        <button type="submit" class="button primary" disabled={text.trim() === "" || isAsking}>
          Sign in
        </button>
        {children}
      </div>
    </form>
  );
}
