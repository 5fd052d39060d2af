/** A bar that says how much of something is used, or left. */

import type { JSX } from "preact";

/** From this share on a bucket is told to be nearly used up. */
const NEARLY = 0.8;

interface LevelProps {
  /** From 0 to 1; null if it is not known. */
  readonly share: number | null;
  /** Whether the share is what is left, not what is used. */
  readonly isLeft?: boolean;
  /** Whether the share is of a rate: then there may be tokens left where all of it is used. */
  readonly isRate?: boolean;
}

/** For the eye only: what it shows is said beside it. */
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
