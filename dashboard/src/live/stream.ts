/** Subscription of the live view to the event stream. */

import { useEffect, useRef, useState } from "preact/hooks";
import { connect, type Link, type LinkState } from "../api/events.ts";
import { needsToken, onSession } from "../session.ts";
import { useStore } from "../ui/store.ts";
import { type LiveData, NO_DATA, withEvent } from "./ticks.ts";

export interface Live {
  /** The data shown: the latest, or that of the moment of the pause. */
  readonly shown: LiveData;
  readonly link: LinkState;
  readonly isPaused: boolean;
  /** Freezes or resumes the display. The stream is read meanwhile. */
  readonly setPaused: (isPaused: boolean) => void;
  /** Reconnects at once after a lost connection. */
  readonly retry: () => void;
}

export function useLive(): Live {
  const [known, setKnown] = useState(NO_DATA);
  const [frozen, setFrozen] = useState<LiveData>();
  const [link, setLink] = useState<LinkState>({ kind: "connecting" });
  const reading = useRef<Link>(undefined);
  // The view stays mounted, hidden, while the user signs in.
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
