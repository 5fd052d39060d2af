/** Session: the token, stored for this tab only and never part of an address. */

const STORED = "sluicegate.token";

type Listener = () => void;

const listeners = new Set<Listener>();
let token = readStored();
/** True if the service answered 401 without a token, or to this one. */
let isRefused = false;

function readStored(): string {
  try {
    return sessionStorage.getItem(STORED) ?? "";
  } catch {
    // Storage may be disabled: the token then lasts as long as the page.
    return "";
  }
}

function notify(): void {
  for (const listener of listeners) listener();
}

/** The token; empty if there is none. */
export function currentToken(): string {
  return token;
}

/** Returns whether this can be a token: visible ASCII. A header can carry nothing else. */
export function isToken(text: string): boolean {
  return /^[!-~]+$/.test(text);
}

/** Returns whether the user must sign in. */
export function needsToken(): boolean {
  return isRefused;
}

/** Signs in with a token; an empty one signs out. */
export function setToken(text: string): void {
  token = text.trim();
  isRefused = false;
  try {
    if (token === "") sessionStorage.removeItem(STORED);
    else sessionStorage.setItem(STORED, token);
  } catch {
    // As above.
  }
  notify();
}

/** Records that the service refused the token, or asked for one. */
export function refuseToken(): void {
  if (isRefused) return;
  isRefused = true;
  notify();
}

/** Calls `listener` after every change; returns the unsubscribe function. */
export function onSession(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
