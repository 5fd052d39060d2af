/** Something outside of the page's parts that changes, such as the address. */

import { useEffect, useState } from "preact/hooks";

/**
 * What `read` says now, and again whenever `subscribe` tells of a change. `subscribe` must stay the same function from
 * one rendering to the next; the answer to it ends that. What is read is compared by identity.
 */
export function useStore<T>(subscribe: (changed: () => void) => () => void, read: () => T): T {
  const [value, setValue] = useState(read);
  useEffect(() => {
    const look = () => setValue(read);
    // It may have changed since it was drawn.
    look();
    return subscribe(look);
  }, [subscribe]);
  return value;
}
