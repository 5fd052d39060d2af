/** Strip that shows the current window and the requests counted in it. */

import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { cleared, colour, useFrame } from "./frame.ts";
import { periodMs, periodName } from "./lane.ts";
import type { LaneState } from "./lane-state.ts";
import { windowAt } from "./level.ts";

const REDRAW_MS = 50;
/** Margin on either side, as a share of the window. */
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
      <canvas ref={canvas} role="img" aria-label="Current window and the requests counted in it" />
      <div class="muted small">{caption(state)}</div>
    </div>
  );
}

function caption({ lane, edge }: LaneState): string {
  if (lane.algorithm === "sliding_window") return `The last ${periodName(lane.period)}, up to now`;
  return edge === undefined ? "Boundaries are known after a request" : "Current window";
}

/** Draws time from left to right. A sliding window ends now; through a fixed window, the line for now moves. */
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
