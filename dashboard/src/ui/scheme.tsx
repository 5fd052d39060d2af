/** Colour scheme: light, dark, or that of the system. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

const STORED = "sluicegate.scheme";

type Scheme = "" | "light" | "dark";

const NEXT: Record<Scheme, Scheme> = { "": "dark", dark: "light", light: "" };
const NAMES: Record<Scheme, string> = { "": "Auto", dark: "Dark", light: "Light" };

function stored(): Scheme {
  try {
    const text = localStorage.getItem(STORED);
    return text === "light" || text === "dark" ? text : "";
  } catch {
    // Storage may be disabled.
    return "";
  }
}

function store(scheme: Scheme): void {
  try {
    localStorage.setItem(STORED, scheme);
  } catch {
    // The choice then lasts as long as the page.
  }
}

function apply(scheme: Scheme): void {
  if (scheme === "") delete document.documentElement.dataset["scheme"];
  else document.documentElement.dataset["scheme"] = scheme;
  dispatchEvent(new Event("schemechange"));
}

/** Called before the first rendering, so that the colours do not flash. */
export function applyScheme(): void {
  apply(stored());
}

export function SchemeButton(): JSX.Element {
  const [scheme, setScheme] = useState(stored);
  const change = () => {
    const next = NEXT[scheme];
    store(next);
    apply(next);
    setScheme(next);
  };
  return (
    <button type="button" class="button quiet" onClick={change} aria-label={`Colours: ${NAMES[scheme]}`}>
      <span aria-hidden="true">◐</span>
      {NAMES[scheme]}
    </button>
  );
}
