/** Bar that shows a share that is used or left. */

import type { JSX } from "preact";

/** From this used share on, a bucket counts as nearly empty. */
const NEARLY = 0.8;

interface LevelProps {
  /** From 0 to 1; null if it is not known. */
  readonly share: number | null;
  /** True if the share is the part left, not the part used. */
  readonly isLeft?: boolean;
  /** True if the share is of a rate: tokens may be left even if all of it is used. */
  readonly isRate?: boolean;
}

/** Hidden from screen readers: the text beside it has the same figures. */
export function Level({ share, isLeft = false, isRate = false }: LevelProps): JSX.Element {
  const bounded = Math.min(Math.max(share ?? 0, 0), 1);
  const used = isLeft ? 1 - bounded : bounded;
  const kind = used >= 1 && !isRate ? "is-used-up" : used >= NEARLY ? "is-nearly" : "";
  return (
    <div class={`level ${kind}`} aria-hidden="true">
      <div class="level-fill" style={{ width: `${bounded * 100}%` }} />
    </div>
  );
}
