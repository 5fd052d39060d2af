/** Signing in with a token, where the service wants one. */

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { call } from "./api/client.ts";
import { focusHeading } from "./focus.ts";
import { hrefOf } from "./route.ts";
import { currentToken, isToken, setToken } from "./session.ts";
import { Field } from "./ui/field.tsx";
import { asProblem } from "./ui/load.ts";

const NO_TOKEN = "this cannot be a token: it has a space, or a character other than visible ASCII";

/**
 * The form. What was shown before stays where it is, hidden, and so does a window that is open over it: then the form is
 * a window over that one, for nothing else could be typed into.
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

/** When the form goes, one is where one was before, or else where what one wanted to see begins. */
function useReturnOfFocus(): void {
  useLayoutEffect(() => {
    const before = document.activeElement;
    return () => {
      // Only then is it shown again.
      requestAnimationFrame(() => {
        const wasSomewhere = before instanceof HTMLElement && before !== document.body && before.isConnected;
        if (wasSomewhere) before.focus();
        else focusHeading();
      });
    };
  }, []);
}

function SignInForm(): JSX.Element {
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
      // Something that is asked of the rules in force, and so is answered also while the database is in trouble.
      await call("POST", "/v1/explain", { body: {}, token });
      setToken(token);
    } catch (thrown) {
      setError(asProblem(thrown).detail);
      setIsAsking(false);
      input.current?.focus();
    }
  };
  return (
    <form class="panel sign-in" onSubmit={signIn}>
      <h1>{currentToken() === "" ? "Sign in" : "Sign in again"}</h1>
      <p class="muted">
        {currentToken() === ""
          ? "This needs a token: the"
          : "The token that you signed in with is not valid any more. Take the"}{" "}
        one in the settings (<code>admin.token</code>), or one that <code>sluicegate tokens create</code> made. It is
        kept for this tab only.
      </p>
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
        <a class="button quiet" href={hrefOf("playground")}>
          The playground needs none
        </a>
      </div>
    </form>
  );
}
