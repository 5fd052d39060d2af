/** State of the connection. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { LinkState } from "../api/events.ts";
import { formatWait } from "../format.ts";

interface ConnectionProps {
  readonly link: LinkState;
  readonly isPaused: boolean;
  readonly retry: () => void;
}

export function Connection({ link, isPaused, retry }: ConnectionProps): JSX.Element {
  if (link.kind === "lost") return <Lost link={link} retry={retry} />;
  if (link.kind === "refused") return <Refused why={link.why} retry={retry} />;
  const [kind, words] = isPaused
    ? ["is-paused", "Paused"]
    : link.kind === "live"
      ? ["is-live", "Live"]
      : ["", "Connecting…"];
  return (
    <span class={`connection ${kind}`} role="status">
      <span class="connection-dot" aria-hidden="true" />
      {words}
    </span>
  );
}

function Lost({ link, retry }: { link: LinkState & { kind: "lost" }; retry: () => void }): JSX.Element {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.floor((now - link.since) / 1000));
  return (
    <Warning retry={retry} about={`For ${formatWait(seconds * 1000)}; reconnecting.`}>
      {link.isAnswered ? "Live data is not available" : "Connection lost"}: {link.why}.
    </Warning>
  );
}

function Refused({ why, retry }: { why: string; retry: () => void }): JSX.Element {
  return (
    <Warning retry={retry} about="The page does not reconnect by itself.">
      Access denied: {why}.
    </Warning>
  );
}

interface TroubleProps {
  readonly retry: () => void;
  /** Not announced by screen readers, because it counts up. */
  readonly about: string;
  readonly children: ComponentChildren;
}

function Warning({ retry, about, children }: TroubleProps): JSX.Element {
  return (
    <>
      <span class="connection is-lost">
        <span class="connection-dot" aria-hidden="true" />
        <span>
          <span role="status">{children} </span>
          <span class="muted">{about}</span>
        </span>
      </span>
      <button type="button" class="button" onClick={retry}>
        Reconnect
      </button>
    </>
  );
}
