/** Timeline of the last minute: the level of each lane as a line, with its requests as marks. */

import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { formatCount } from "../format.ts";
import { cleared, colour, useFrame } from "./frame.ts";
import { HISTORY_MS, type Mark } from "./history.ts";
import { isStepwise } from "./lane.ts";
import type { LaneState } from "./lane-state.ts";
import { shortCount } from "./words.ts";

const REDRAW_MS = 66;
/** Closer marks are merged. */
const MARKS_APART = 5;
/** More than the vertical positions in a row. */
const PLACES_MAX = 1000;
const MARK_SIZE = 3.2;
/** Vertical padding, so that marks are not clipped. */
const PAD = 8;
/** Width of the scale at the left. */
const SCALE_WIDTH = 36;
const GRID_MS = 10_000;

interface TimelineProps {
  readonly states: readonly LaneState[];
  readonly now: () => number;
}

export function Timeline({ states, now }: TimelineProps): JSX.Element {
  return (
    <section class="panel pg-timeline" aria-labelledby="pg-timeline">
      <div class="pg-panel-head">
        <h2 id="pg-timeline">Last minute</h2>
        <div class="pg-legend small">
          <span class="pg-key-line">level</span>
          <span class="pg-key-allowed">● allowed</span>
          <span class="pg-key-denied">✕ denied</span>
        </div>
      </div>
      <div class={`pg-rows ${states.length > 1 ? "several" : ""}`}>
        {states.map((state) => (
          <Row key={state.id} state={state} now={now} hasName={states.length > 1} />
        ))}
      </div>
      <div class="pg-axis muted" aria-hidden="true">
        <span>60 s ago</span>
        <span>30 s</span>
        <span>now</span>
      </div>
    </section>
  );
}

interface RowProps {
  readonly state: LaneState;
  readonly now: () => number;
  readonly hasName: boolean;
}

function Row({ state, now, hasName }: RowProps): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  useFrame(() => draw(canvas.current, state, now()), REDRAW_MS);
  const counts = `${formatCount(state.allowed)} allowed, ${formatCount(state.denied)} denied`;
  return (
    <div>
      {hasName && <div class="small pg-row-name">{state.lane.name}</div>}
      <canvas ref={canvas} role="img" aria-label={`Level of ${state.lane.name} over the last minute; ${counts}`} />
    </div>
  );
}

/** Coordinates on the canvas. */
interface Scale {
  readonly x: (at: number) => number;
  readonly y: (level: number) => number;
}

function draw(canvas: HTMLCanvasElement | null, state: LaneState, now: number): void {
  const paper = cleared(canvas);
  if (paper === undefined) return;
  const { pen, width, height } = paper;
  const limit = state.reading?.limit ?? 1;
  const scale: Scale = {
    x: (at) => SCALE_WIDTH + ((at - now) / HISTORY_MS + 1) * (width - SCALE_WIDTH - PAD),
    y: (level) => height - PAD - (Math.min(level, limit) / limit) * (height - 2 * PAD),
  };
  drawGrid(pen, scale, limit, now, width, height);
  pen.save();
  pen.beginPath();
  pen.rect(SCALE_WIDTH - MARK_SIZE, 0, width, height);
  pen.clip();
  drawLevel(pen, scale, state, now);
  for (const mark of thinned(state.history.marks, scale)) drawMark(pen, scale, mark);
  pen.restore();
}

function drawGrid(
  pen: CanvasRenderingContext2D,
  { x, y }: Scale,
  limit: number,
  now: number,
  width: number,
  height: number,
): void {
  pen.strokeStyle = colour("--line");
  pen.lineWidth = 1;
  pen.beginPath();
  for (const level of [0, limit]) {
    pen.moveTo(SCALE_WIDTH, Math.round(y(level)) + 0.5);
    pen.lineTo(width - PAD, Math.round(y(level)) + 0.5);
  }
  for (let at = now - HISTORY_MS; at <= now; at += GRID_MS) {
    pen.moveTo(Math.round(x(at)) + 0.5, PAD);
    pen.lineTo(Math.round(x(at)) + 0.5, height - PAD);
  }
  pen.stroke();
  pen.fillStyle = colour("--muted");
  pen.font = "11px system-ui, sans-serif";
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const level of [0, limit]) pen.fillText(shortCount(level), SCALE_WIDTH - 6, y(level));
}

function drawLevel(pen: CanvasRenderingContext2D, { x, y }: Scale, state: LaneState, now: number): void {
  const level = state.level(now);
  const [first] = state.history.points;
  if (level === undefined || first === undefined) return;
  pen.beginPath();
  let before = first;
  for (const point of [...state.history.points, { at: now, level }]) {
    // Levels that change in steps are drawn as steps.
    if (isStepwise(state.lane)) pen.lineTo(x(point.at), y(before.level));
    pen.lineTo(x(point.at), y(point.level));
    before = point;
  }
  pen.strokeStyle = colour("--water");
  pen.lineWidth = 2;
  pen.lineJoin = "round";
  pen.stroke();
  pen.lineTo(x(now), y(0));
  pen.lineTo(x(first.at), y(0));
  pen.closePath();
  pen.fillStyle = colour("--water-soft");
  pen.globalCompositeOperation = "destination-over";
  pen.fill();
  pen.globalCompositeOperation = "source-over";
}

/** Keeps one mark of each kind where several would overlap. */
function thinned(marks: readonly Mark[], { x, y }: Scale): Mark[] {
  const taken = new Set<number>();
  return marks.filter((mark) => {
    const [column, row] = [x(mark.at), y(mark.level)].map((place) => Math.round(place / MARKS_APART));
    const place = (column! * PLACES_MAX + row!) * 2 + Number(mark.isAllowed);
    return !taken.has(place) && taken.add(place);
  });
}

/** Draws a dot for an allowed request, a cross for a denied one. */
function drawMark(pen: CanvasRenderingContext2D, { x, y }: Scale, mark: Mark): void {
  const [left, top, size] = [x(mark.at), y(mark.level), MARK_SIZE];
  pen.beginPath();
  if (mark.isAllowed) {
    pen.arc(left, top, size, 0, 2 * Math.PI);
    pen.fillStyle = colour("--allowed");
    pen.fill();
    return;
  }
  pen.moveTo(left - size, top - size);
  pen.lineTo(left + size, top + size);
  pen.moveTo(left + size, top - size);
  pen.lineTo(left - size, top + size);
  pen.strokeStyle = colour("--denied");
  pen.lineWidth = 2;
  pen.stroke();
}
