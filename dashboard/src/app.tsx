/** Frame of the page: navigation, sign-in and the current view. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Boundary } from "./boundary.tsx";
import { CallersView } from "./callers/view.tsx";
import { ExplainView } from "./explain/view.tsx";
import { focusHeading } from "./focus.ts";
import { HistoryView } from "./history/view.tsx";
import icon from "./icon.svg";
import { LiveView } from "./live/view.tsx";
import { PlaygroundView } from "./playground/view.tsx";
import { hrefOf, useRoute, type View } from "./route.ts";
import { dropDrafts } from "./rules/drafts.ts";
import { RulesView } from "./rules/view.tsx";
import { currentToken, needsToken, onSession, setToken } from "./session.ts";
import { SignIn } from "./sign-in.tsx";
import { SchemeButton } from "./ui/scheme.tsx";
import { useStore } from "./ui/store.ts";
import { Toasts } from "./ui/toasts.tsx";
import { ViolationsView } from "./violations/view.tsx";

const TABS: readonly (readonly [View, string, () => JSX.Element])[] = [
  ["playground", "Playground", PlaygroundView],
  ["live", "Live", LiveView],
  ["rules", "Rules", RulesView],
  ["explain", "Explain", ExplainView],
  ["violations", "Violations", ViolationsView],
  ["history", "History", HistoryView],
  ["callers", "Callers", CallersView],
];

export function App(): JSX.Element {
  const { view } = useRoute();
  const isRefused = useStore(onSession, needsToken);
  const isSignedIn = useStore(onSession, () => currentToken() !== "");
  const [signedOut, setSignedOut] = useState(0);
  const [, title, RuleList] = TABS.find(([name]) => name === view) ?? TABS[0]!;
  // The playground needs no token.
  const isClosed = isRefused && view !== "playground";
  const isKept = useKept(view, isClosed);
  useArrival(view, title);
  const signOut = () => {
    setToken("");
    dropDrafts();
    // The next user must not see the data of this one: the view is mounted anew.
    setSignedOut((times) => times + 1);
  };
  return (
    <>
      <button type="button" class="skip" onClick={skip}>
        Skip to content
      </button>
      <header class="header">
        <a class="brand" href={hrefOf("playground")}>
          <img src={icon} alt="" />
          Sluicegate
        </a>
        <nav class="nav" aria-label="Views">
          {TABS.map(([name, title]) => (
            <a key={name} href={hrefOf(name)} aria-current={name === view ? "page" : undefined}>
              {title}
            </a>
          ))}
        </nav>
        <div class="header-end">
          {isSignedIn && !isRefused && (
            <button type="button" class="button quiet" onClick={signOut}>
              Sign out
            </button>
          )}
          <SchemeButton />
        </div>
      </header>
      <main id="main" class="main" tabIndex={-1}>
        {isClosed && <SignIn />}
        {(!isClosed || isKept) && (
          <div class="view" hidden={isClosed} key={`${view} ${signedOut}`}>
            <Boundary>
              <RuleList />
            </Boundary>
          </div>
        )}
      </main>
      <footer class="footer">
        <span>Sluicegate</span>
        <a href="/openapi.json">API</a>
        <a href="/metrics">Metrics</a>
        <a href="/readyz?verbose">Health</a>
      </footer>
      <Toasts />
    </>
  );
}

/**
 * Returns whether the view was mounted before the service refused the token. It then stays mounted, hidden, and keeps
 * what was typed into it.
 */
function useKept(view: View, isClosed: boolean): boolean {
  const mounted = useRef<View>(undefined);
  if (!isClosed) mounted.current = view;
  else if (mounted.current !== view) mounted.current = undefined;
  return mounted.current === view;
}

/** Sets the title and moves the focus to the heading when the view changes. */
function useArrival(view: View, title: string): void {
  const before = useRef(view);
  useEffect(() => {
    document.title = `${title} - Sluicegate`;
    if (before.current === view) return;
    before.current = view;
    scrollTo(0, 0);
    focusHeading();
  }, [view, title]);
}

/** Not a link: the fragment of the address is the route, so it cannot name an anchor. */
function skip(): void {
  document.getElementById("main")?.focus();
}
