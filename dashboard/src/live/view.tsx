/** Live view: current traffic, limited subjects, rules and state. */

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
          <h1>Live traffic</h1>
          <p>Current decisions by rule, the subjects they limit, and the state of the service.</p>
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
            {live.isPaused ? "Resume" : "Pause"}
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
  connecting: "The first data arrives within a second or two.",
  live: "The first data arrives within a second or two.",
  lost: "No data until the service answers. The page reconnects by itself.",
  refused: "No data: the service denies access. The reason is above.",
};

/** Shown until the first tick arrives. */
function Waiting({ kind }: { readonly kind: LinkState["kind"] }): JSX.Element {
  return (
    <div class="panel waiting">
      <p class="muted">{WAITING[kind]}</p>
    </div>
  );
}

/** The panel of the subject in the address, if any. */
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

/** Returns the focus to the row that opened the panel, or to the heading of the list if the row is gone. */
function focusAgain(row: Element | null): void {
  const isThere = row instanceof HTMLElement && row !== document.body && row.isConnected;
  const rows = document.getElementById("limited-heading");
  if (isThere) row.focus();
  else if (rows !== null) rows.focus();
  else focusHeading();
}
