/** Where one is: the part of the address after `#`, such as `#/rules?rule=3`. It is all that a link needs. */

import { useStore } from "./ui/store.ts";

export const VIEWS = ["playground", "live", "rules", "explain", "violations"] as const;
export type View = (typeof VIEWS)[number];

export interface Route {
  readonly view: View;
  readonly params: URLSearchParams;
}

/** Reads an address. What is not known leads to the playground. */
export function parseRoute(hash: string): Route {
  const text = hash.replace(/^#\/?/, "");
  // Only the first `?` ends the path: values may have others.
  const [path = ""] = text.split("?", 1);
  const view = VIEWS.find((view) => view === path) ?? "playground";
  return { view, params: new URLSearchParams(text.slice(path.length + 1)) };
}

/** The address of a view. Parameters that are empty are left out. */
export function hrefOf(view: View, params: URLSearchParams | Record<string, string | number | undefined> = {}): string {
  const pairs = params instanceof URLSearchParams ? [...params] : Object.entries(params);
  const query = new URLSearchParams();
  for (const [name, value] of pairs) {
    if (value !== undefined && value !== "") query.append(name, String(value));
  }
  const text = query.toString();
  return text === "" ? `#/${view}` : `#/${view}?${text}`;
}

/** Goes there; one can go back. */
export function goTo(href: string): void {
  location.hash = href;
}

/** Puts the state of a view into the address, without a step to go back to. */
export function replaceAddress(href: string): void {
  if (location.hash === href) return;
  history.replaceState(null, "", href);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** Where one is, whenever that changes. */
export function useRoute(): Route {
  return parseRoute(useStore(subscribe, () => location.hash));
}

function subscribe(changed: () => void): () => void {
  addEventListener("hashchange", changed);
  return () => removeEventListener("hashchange", changed);
}
