/** The token that one has signed in with. It is kept for this tab only, and never part of an address. */

const STORED = "sluicegate.token";

type Listener = () => void;

const listeners = new Set<Listener>();
let token = readStored();
/** Whether the service has refused to answer without a token, or with this one. */
let isRefused = false;

function readStored(): string {
  try {
    return sessionStorage.getItem(STORED) ?? "";
  } catch {
    // Some browsers refuse to keep anything: then it lasts as long as the page.
    return "";
  }
}

function tell(): void {
  for (const listener of listeners) listener();
}

/** The token; empty if there is none. */
export function currentToken(): string {
  return token;
}

/** Whether this can be one: visible ASCII. Nothing else can be sent, or is ever one. */
export function isToken(text: string): boolean {
  return /^[!-~]+$/.test(text);
}

/** Whether one has to sign in. */
export function needsToken(): boolean {
  return isRefused;
}

/** Signs in with a token; out with an empty one. */
export function setToken(text: string): void {
  token = text.trim();
  isRefused = false;
  try {
    if (token === "") sessionStorage.removeItem(STORED);
    else sessionStorage.setItem(STORED, token);
  } catch {
    // As above.
  }
  tell();
}

/** Takes note that the service wants a token, or another one. */
export function refuseToken(): void {
  if (isRefused) return;
  isRefused = true;
  tell();
}

/** Calls `listener` whenever something here changes; the answer ends that. */
export function onSession(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
