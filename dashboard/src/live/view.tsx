/** Live: who is limited by which rule right now. */

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { LinkState } from "../api/events.ts";
import { focusHeading } from "../focus.ts";
import { goTo, useRoute } from "../route.ts";
import { byOf, liveHref, panelOf } from "./address.ts";
import { Connection } from "./connection.tsx";
import { Empty } from "./empty.tsx";
import { Headline } from "./headline.tsx";
import { Limited } from "./limited.tsx";
import "./lists.css";
import "./live.css";
import { RulesNow } from "./rules-now.tsx";
import { Shared } from "./shared.tsx";
import { State } from "./state.tsx";
import { useLive } from "./stream.ts";
import { SubjectPanel } from "./subject/panel.tsx";
import { hasTraffic } from "./ticks.ts";
import { Traffic } from "./traffic.tsx";

export function LiveView(): JSX.Element {
  const live = useLive();
  const { history, last } = live.shown;
  const isBehind = live.link.kind !== "live" || live.isPaused;
  return (
    <>
      <div class="view-head">
        <div>
          <h1>Live</h1>
          <p>What the rules decide right now, whom they limit, and what can be done about it.</p>
        </div>
        <div class="row">
          <Connection link={live.link} isPaused={live.isPaused} retry={live.retry} />
          <button
            type="button"
            class="button"
            aria-pressed={live.isPaused}
            disabled={last === undefined}
            onClick={() => live.setPaused(!live.isPaused)}
          >
            {live.isPaused ? "Go on" : "Pause"}
          </button>
        </div>
      </div>
      {last === undefined && <Waiting kind={live.link.kind} />}
      {last !== undefined && (
        <div class={isBehind ? "live is-behind" : "live"}>
          <Headline history={history} last={last} isLost={live.link.kind === "lost" || live.link.kind === "refused"} />
          {hasTraffic(history) ? <Traffic history={history} /> : <Empty />}
          <div class="live-columns">
            <div class="live-column">
              <Limited limited={last.limited} now={last.now} />
              <RulesNow history={history} />
            </div>
            <div class="live-column">
              <Shared shared={last.shared} history={history} />
              <State last={last} history={history} />
            </div>
          </div>
        </div>
      )}
      <OpenSubject />
    </>
  );
}

const WAITING: Record<LinkState["kind"], string> = {
  connecting: "The first figures come within a second or two.",
  live: "The first figures come within a second or two.",
  lost: "Nothing can be shown until the service answers. The page keeps asking; there is no need to reload it.",
  refused: "Nothing can be shown as long as the service refuses it. Why it does stands above.",
};

/** Before the first second is told. */
function Waiting({ kind }: { readonly kind: LinkState["kind"] }): JSX.Element {
  return (
    <div class="panel waiting">
      <p class="muted">{WAITING[kind]}</p>
    </div>
  );
}

/** The panel of the subject that the address names, if it names one. */
function OpenSubject(): JSX.Element | null {
  const { params } = useRoute();
  const before = useRef<Element>(null);
  const opened = panelOf(params);
  const isOpen = opened !== undefined;
  if (!isOpen) before.current = null;
  else before.current ??= document.activeElement;
  useEffect(() => {
    if (!isOpen) return undefined;
    const row = before.current;
    return () => requestAnimationFrame(() => focusAgain(row));
  }, [isOpen]);
  if (opened === undefined) return null;
  const { ruleId, subject } = opened;
  const close = () => goTo(liveHref(byOf(params)));
  return <SubjectPanel key={`${ruleId} ${subject}`} {...opened} onClose={close} />;
}

/** The row that a panel was opened from has the focus again. It may be gone: then it is where rows like it are. */
function focusAgain(row: Element | null): void {
  const isThere = row instanceof HTMLElement && row !== document.body && row.isConnected;
  const rows = document.getElementById("limited-heading");
  if (isThere) row.focus();
  else if (rows !== null) rows.focus();
  else focusHeading();
}
