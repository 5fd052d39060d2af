/** Subscription to state outside of components, such as the address. */

import { useEffect, useState } from "preact/hooks";

/**
 * The current value of `read`; renders again after every change that `subscribe` reports. `subscribe` must be a stable
 * function and return the unsubscribe function. Values are compared by identity.
 */
export function useStore<T>(subscribe: (changed: () => void) => () => void, read: () => T): T {
  const [value, setValue] = useState(read);
  useEffect(() => {
    const look = () => setValue(read);
    // It may have changed since the rendering.
    look();
    return subscribe(look);
  }, [subscribe]);
  return value;
}
