/** Toasts: short messages about completed actions. */

import type { JSX } from "preact";
import type { Kind } from "./notice.tsx";
import { useStore } from "./store.ts";

/** The most toasts at once; older ones are removed. */
const TOASTS_MAX = 4;
const SHOWN_MS = 6000;

interface Toast {
  readonly id: number;
  readonly kind: Kind;
  readonly text: string;
}

const listeners = new Set<() => void>();
let toasts: readonly Toast[] = [];
let lastId = 0;

function set(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

function subscribe(changed: () => void): () => void {
  listeners.add(changed);
  return () => listeners.delete(changed);
}

/** Shows a toast for a few seconds. */
export function showToast(text: string, kind: Kind = "ok"): void {
  lastId += 1;
  const toast = { id: lastId, kind, text };
  set([...toasts, toast].slice(-TOASTS_MAX));
  setTimeout(() => set(toasts.filter((other) => other !== toast)), SHOWN_MS);
}

export function Toasts(): JSX.Element {
  const shown = useStore(subscribe, () => toasts);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.map((toast) => (
        <div key={toast.id} class={`notice ${toast.kind}`}>
          {toast.text}
        </div>
      ))}
    </div>
  );
}
