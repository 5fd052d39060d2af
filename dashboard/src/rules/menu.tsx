/** Menu button. The browser closes the menu on Escape and on a click elsewhere. */

import type { ComponentChildren, JSX } from "preact";
import { useId, useRef } from "preact/hooks";

/** Distance from the button and from the edge of the window. */
const MARGIN_PX = 4;

interface MenuProps {
  readonly label: string;
  readonly children: ComponentChildren;
}

export function Menu({ label, children }: MenuProps): JSX.Element {
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const id = useId();
  const place = () => {
    const [from, shown] = [button.current?.getBoundingClientRect(), list.current];
    if (from === undefined || shown === null || !shown.matches(":popover-open")) return;
    const { width, height } = shown.getBoundingClientRect();
    const isBelow = from.bottom + height + MARGIN_PX <= innerHeight;
    shown.style.left = `${Math.max(MARGIN_PX, from.right - width)}px`;
    shown.style.top = `${Math.max(MARGIN_PX, isBelow ? from.bottom + MARGIN_PX : from.top - height - MARGIN_PX)}px`;
  };
  const close = () => list.current?.hidePopover();
  return (
    <>
      <button ref={button} type="button" class="button quiet menu-button" popovertarget={id} aria-label={label}>
        <span aria-hidden="true">⋯</span>
      </button>
      {/* A click on any item closes the menu. */}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the items in it are interactive. */}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: pressing a key on an item clicks it. */}
      <div ref={list} id={id} popover="auto" class="menu" onToggle={place} onClick={close}>
        {children}
      </div>
    </>
  );
}
