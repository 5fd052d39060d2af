/** Where the focus goes when a part is shown. */

import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** The element that it is given to has the focus once it is there. */
export function useFocus<T extends HTMLElement>(): RefObject<T | null> {
  const element = useRef<T>(null);
  useEffect(() => element.current?.focus(), []);
  return element;
}
