/** Callers view: identities of the clients that ask for decisions. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { onClock, serviceAheadMs } from "../api/clock.ts";
import type { Caller, CreatedCaller } from "../api/types.ts";
import { Notice } from "../ui/notice.tsx";
import { usePoll } from "../ui/poll.ts";
import { useStore } from "../ui/store.ts";
import { showToast } from "../ui/toasts.tsx";
import { type Callers, loadCallers } from "./api.ts";
import { ChangeCaller, CreateCaller } from "./edit.tsx";
import { RevokeCaller } from "./revoke.tsx";
import { CallerTable } from "./table.tsx";
import { NewToken } from "./token.tsx";
import "./callers.css";

/** Polling interval: times of last use are written every 30 s. */
const EVERY_MS = 10_000;
/** Appended to the message after every change. */
const IN_FORCE = "In force here at once, in other processes within two seconds.";

/** The dialog that is open. */
type Opened =
  | { readonly kind: "create" }
  | { readonly kind: "change"; readonly caller: Caller }
  | { readonly kind: "revoke"; readonly caller: Caller };

export function CallersView(): JSX.Element {
  const list = usePoll<Callers>(loadCallers, EVERY_MS, []);
  const aheadMs = useStore(onClock, serviceAheadMs);
  const [opened, setOpened] = useState<Opened>();
  const [created, setCreated] = useState<CreatedCaller>();
  const heading = useRef<HTMLHeadingElement>(null);
  const [gone, setGone] = useState(0);
  // After the dialog is closed: the row with the focused button is removed.
  useEffect(() => {
    if (gone > 0) heading.current?.focus();
  }, [gone]);
  const now = Date.now() + aheadMs;
  const close = () => setOpened(undefined);
  const done = (text: string) => {
    close();
    showToast(`${text} ${IN_FORCE}`);
    list.refresh();
  };
  const callers = list.value?.callers ?? [];
  const isChangeable = list.value?.isChangeable === true;
  return (
    <>
      <div class="view-head">
        <div>
          <h1 ref={heading} tabIndex={-1}>
            Callers
          </h1>
          <p>A caller is an application that asks this service for decisions, with its own token and rights.</p>
        </div>
        {isChangeable && (
          <button type="button" class="button primary" onClick={() => setOpened({ kind: "create" })}>
            New caller
          </button>
        )}
      </div>
      {list.problem !== undefined && <Notice kind="error">Could not load the callers: {list.problem.detail}</Notice>}
      {list.value === undefined && list.problem === undefined && <p class="muted">Loading…</p>}
      {created?.token !== undefined && (
        <NewToken
          key={created.name}
          created={created}
          onDone={() => {
            setCreated(undefined);
            heading.current?.focus();
          }}
        />
      )}
      {list.value !== undefined && !isChangeable && (
        <Notice kind="info">Your token has the role read: it can see callers, but not change them.</Notice>
      )}
      {list.value !== undefined &&
        (callers.length === 0 ? (
          <Empty />
        ) : (
          <CallerTable
            callers={callers}
            isChangeable={isChangeable}
            now={now}
            onChange={(caller) => setOpened({ kind: "change", caller })}
            onRevoke={(caller) => setOpened({ kind: "revoke", caller })}
          />
        ))}
      {opened?.kind === "create" && (
        <CreateCaller
          isFirst={callers.length === 0}
          onClose={close}
          onCreated={(caller) => {
            setCreated(caller);
            done(`Caller ${caller.name} created.`);
          }}
        />
      )}
      {opened?.kind === "change" && (
        <ChangeCaller
          caller={opened.caller}
          onClose={close}
          onChanged={({ name }) => done(`Caller ${name} changed.`)}
        />
      )}
      {opened?.kind === "revoke" && (
        <RevokeCaller
          caller={opened.caller}
          isLast={callers.length === 1}
          now={now}
          onClose={close}
          onRevoked={() => {
            if (created?.name === opened.caller.name) setCreated(undefined);
            done(`Caller ${opened.caller.name} revoked.`);
            setGone((times) => times + 1);
          }}
        />
      )}
    </>
  );
}

function Empty(): JSX.Element {
  return (
    <div class="panel callers-empty">
      <h2>No callers</h2>
      <p>
        Without callers, every client on this machine may ask for decisions. You need one for each application as soon
        as the service listens on a network, or when several teams share it: each proves who it is by a token or a
        client certificate, may do only what you allow, and can have a namespace that keeps its keys apart.
      </p>
      <p class="muted">
        Once the first caller exists, requests without one are refused, unless <code>listen.anonymous</code> is{" "}
        <code>true</code>. On the command line: <code>sluicegate callers create NAME --may check,take</code>.
      </p>
    </div>
  );
}
