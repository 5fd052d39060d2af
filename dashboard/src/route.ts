/** Routes: the fragment of the address, such as `#/rules?rule=3`, holds the whole state of a view. */

import { useStore } from "./ui/store.ts";

export const VIEWS = ["playground", "live", "rules", "explain", "violations", "history", "callers"] as const;
export type View = (typeof VIEWS)[number];

export interface Route {
  readonly view: View;
  readonly params: URLSearchParams;
}

/** Parses a fragment. An unknown view is the playground. */
export function parseRoute(hash: string): Route {
  const text = hash.replace(/^#\/?/, "");
  // Only the first `?` ends the path: values may have others.
  const [path = ""] = text.split("?", 1);
  const view = VIEWS.find((view) => view === path) ?? "playground";
  return { view, params: new URLSearchParams(text.slice(path.length + 1)) };
}

/** The address of a view. Empty parameters are left out. */
export function hrefOf(view: View, params: URLSearchParams | Record<string, string | number | undefined> = {}): string {
  const pairs = params instanceof URLSearchParams ? [...params] : Object.entries(params);
  const query = new URLSearchParams();
  for (const [name, value] of pairs) {
    if (value !== undefined && value !== "") query.append(name, String(value));
  }
  const text = query.toString();
  return text === "" ? `#/${view}` : `#/${view}?${text}`;
}

/** Navigates, with an entry in the browser's history. */
export function goTo(href: string): void {
  location.hash = href;
}

/** Replaces the address, without an entry in the browser's history. */
export function replaceAddress(href: string): void {
  if (location.hash === href) return;
  history.replaceState(null, "", href);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** The current route; renders again when it changes. */
export function useRoute(): Route {
  return parseRoute(useStore(subscribe, () => location.hash));
}

function subscribe(changed: () => void): () => void {
  addEventListener("hashchange", changed);
  return () => removeEventListener("hashchange", changed);
}
