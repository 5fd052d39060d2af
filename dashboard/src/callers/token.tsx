/** Token of a caller that was just created. It exists only here: the service stores its hash. */

import type { JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import type { CreatedCaller } from "../api/types.ts";
import { Copy } from "../ui/copy.tsx";

interface NewTokenProps {
  readonly created: CreatedCaller;
  readonly onDone: () => void;
}

export function NewToken({ created, onDone }: NewTokenProps): JSX.Element {
  const { name, token = "" } = created;
  const heading = useRef<HTMLHeadingElement>(null);
  const id = useId();
  useEffect(() => heading.current?.focus(), []);
  // The browser asks before the page is closed.
  useEffect(() => {
    const ask = (event: Event) => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, []);
  return (
    <section class="panel caller-token" aria-labelledby={id}>
      <h2 id={id} ref={heading} tabIndex={-1}>
        Token of {name}
      </h2>
      <p>
        <strong>Copy it now: it is not shown again.</strong> The service stores only its hash, and it is gone from this
        page when you leave the view.
      </p>
      <div class="row">
        <code class="key">{token}</code>
        <Copy text={() => token}>Copy token</Copy>
      </div>
      <p class="muted small">
        HTTP and gRPC: <code>authorization: Bearer TOKEN</code>. Redis protocol: <code>AUTH {name} TOKEN</code>. At{" "}
        <code>/v1/authorize</code>: <code>x-sluicegate-token: TOKEN</code>.
      </p>
      <div class="row">
        <button type="button" class="button" onClick={onDone}>
          Done
        </button>
      </div>
    </section>
  );
}
