/** History of a lane over the last minute: levels and decisions. */

export const HISTORY_MS = 60_000;
/** More than 50 requests per second for a minute, with room for bursts. */
export const MARKS_MAX = 4000;
export const POINTS_MAX = 4000;
/** Closer points cannot be distinguished in the chart. */
const POINTS_APART_MS = 15;

export interface Point {
  readonly at: number;
  readonly level: number;
}

export interface Mark extends Point {
  readonly isAllowed: boolean;
}

export class History {
  readonly points: Point[] = [];
  readonly marks: Mark[] = [];

  /** Adds a level. Of points at about the same time, the first and the last are kept. */
  addPoint(point: Point): void {
    const before = this.points.at(-2);
    if (before !== undefined && point.at - before.at < POINTS_APART_MS) this.points.pop();
    this.points.push(point);
    forget(this.points, point.at, POINTS_MAX);
  }

  addMark(mark: Mark): void {
    this.marks.push(mark);
    forget(this.marks, mark.at, MARKS_MAX);
  }
}

/** Drops points that are too old, except the last of them, where the line starts; and the oldest beyond `most`. */
function forget(list: Point[], now: number, most: number): void {
  let old = 0;
  while (old + 1 < list.length && list[old + 1]!.at < now - HISTORY_MS) old++;
  old = Math.max(old, list.length - most);
  if (old > 0) list.splice(0, old);
}
