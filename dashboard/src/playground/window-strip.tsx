/** The window in time: what counts in it, and where its edge is. */

import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { cleared, colour, useFrame } from "./frame.ts";
import { periodMs, periodName } from "./lane.ts";
import type { LaneState } from "./lane-state.ts";
import { windowAt } from "./level.ts";

const REDRAW_MS = 50;
/** Of the strip, beyond the window on either side. */
const MARGIN = 0.25;

interface StripProps {
  readonly state: LaneState;
  readonly now: () => number;
}

export function WindowStrip({ state, now }: StripProps): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  useFrame(() => draw(canvas.current, state, now()), REDRAW_MS);
  return (
    <div class="pg-strip">
      <canvas ref={canvas} role="img" aria-label="The window, and what counts in it" />
      <div class="muted small">{caption(state)}</div>
    </div>
  );
}

function caption({ lane, edge }: LaneState): string {
  if (lane.algorithm === "sliding_window") return `The last ${periodName(lane.period)}, up to now`;
  return edge === undefined ? "Its edges show with a request" : "This window, from edge to edge";
}

/** Time goes from left to right. A sliding window ends now; others stand still, and now moves through them. */
function draw(canvas: HTMLCanvasElement | null, state: LaneState, now: number): void {
  const paper = cleared(canvas);
  if (paper === undefined) return;
  const { pen, width, height } = paper;
  const length = periodMs(state.lane);
  const known = windowAt(state.lane, state.edge, now);
  const edges = known ?? { start: now - length / 2, end: now + length / 2 };
  const from = edges.start - length * MARGIN;
  const x = (time: number) => ((time - from) / (length * (1 + 2 * MARGIN))) * width;
  pen.fillStyle = colour("--water-soft");
  if (known !== undefined) pen.fillRect(x(edges.start), 0, x(edges.end) - x(edges.start), height);
  for (const { at } of state.spends) {
    const counts = at >= edges.start && at <= edges.end;
    pen.fillStyle = colour(counts ? "--allowed" : "--line-strong");
    pen.fillRect(x(at) - 1, height * 0.3, 2, height * 0.4);
  }
  pen.strokeStyle = colour("--accent");
  pen.lineWidth = 1.5;
  pen.setLineDash([3, 3]);
  if (known !== undefined) for (const edge of [edges.start, edges.end]) line(pen, x(edge), height);
  pen.setLineDash([]);
  pen.strokeStyle = colour("--ink");
  line(pen, x(now), height);
}

function line(pen: CanvasRenderingContext2D, x: number, height: number): void {
  pen.beginPath();
  pen.moveTo(x, 0);
  pen.lineTo(x, height);
  pen.stroke();
}
