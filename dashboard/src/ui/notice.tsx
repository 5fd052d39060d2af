/** Notice: an info, success, warning or error message. */

import type { ComponentChildren, JSX } from "preact";

export type Kind = "info" | "ok" | "warning" | "error";

export function Notice({ kind, children }: { readonly kind: Kind; readonly children: ComponentChildren }): JSX.Element {
  return (
    <div class={`notice ${kind}`} role={kind === "error" ? "alert" : "status"}>
      {children}
    </div>
  );
}
