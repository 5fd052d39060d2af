/** The stream of what happens, for as long as somebody looks. */

import { useEffect, useRef, useState } from "preact/hooks";
import { connect, type Link, type LinkState } from "../api/events.ts";
import { needsToken, onSession } from "../session.ts";
import { useStore } from "../ui/store.ts";
import { type LiveData, NO_DATA, withEvent } from "./ticks.ts";

export interface Live {
  /** What is shown: what is known, or what was when it was paused. */
  readonly shown: LiveData;
  readonly link: LinkState;
  readonly isPaused: boolean;
  /** Freezes what is shown, or lets it go on. It reads on all the while. */
  readonly setPaused: (isPaused: boolean) => void;
  /** Asks the service at once, where the connection is lost. */
  readonly retry: () => void;
}

export function useLive(): Live {
  const [known, setKnown] = useState(NO_DATA);
  const [frozen, setFrozen] = useState<LiveData>();
  const [link, setLink] = useState<LinkState>({ kind: "connecting" });
  const reading = useRef<Link>(undefined);
  // A view stays where it is, hidden, while somebody signs in.
  const isRefused = useStore(onSession, needsToken);
  useEffect(() => {
    if (isRefused) return undefined;
    const opened = connect("/v1/events", {
      onEvent: (event) => setKnown((known) => withEvent(known, event)),
      onState: setLink,
    });
    reading.current = opened;
    return () => opened.stop();
  }, [isRefused]);
  return {
    shown: frozen ?? known,
    link,
    isPaused: frozen !== undefined,
    setPaused: (isPaused) => setFrozen(isPaused ? known : undefined),
    retry: () => reading.current?.retry(),
  };
}
