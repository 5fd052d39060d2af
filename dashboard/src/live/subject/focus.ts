/** Initial focus. */

import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** Focuses the element with this ref when it is mounted. */
export function useFocus<T extends HTMLElement>(): RefObject<T | null> {
  const element = useRef<T>(null);
  useEffect(() => element.current?.focus(), []);
  return element;
}
