/**
 * Drawing of a bucket: the water rises with the refill, falls with a grant, and the bucket shakes at a denial. Grey and
 * without water until the level is known.
 */

import type { JSX } from "preact";
import { useId, useRef } from "preact/hooks";
import { formatCount } from "../format.ts";
import { isCalm, useFrame } from "./frame.ts";
import { isInterval, isWindow, limitOf } from "./lane.ts";
import type { LaneState } from "./lane-state.ts";
import { shortCount } from "./words.ts";

/** Heights of the water in a full and in an empty bucket, in units of the drawing. */
const FULL_Y = 58;
const EMPTY_Y = 202;

/** The most marks on the wall. */
const MARKS_MAX = 20;
/** Share of the way to the new level per frame: fast, but visible. */
const EASE = 0.22;
/** The shortest interval between floating numbers. */
const FLOATS_APART_MS = 140;
/** Bounds of the drops per second. */
const DRIPS_MAX = 4;
const DRIPS_MIN = 0.4;

const WALL = "M22 44 L36 190 Q37.5 204 52 204 H128 Q142.5 204 144 190 L158 44";
const WAVE =
  "M-80 0 q10 -5 20 0 t20 0 t20 0 t20 0 t20 0 t20 0 t20 0 t20 0 t20 0 t20 0 t20 0 t20 0 t20 0 t20 0 V220 H-80 Z";

interface BucketDrawingProps {
  readonly state: LaneState;
  readonly now: () => number;
}

export function BucketDrawing({ state, now }: BucketDrawingProps): JSX.Element {
  const id = useId();
  const drawing = useRef<SVGSVGElement>(null);
  const water = useRef<SVGGElement>(null);
  const isQueue = state.lane.algorithm === "leaky_bucket";
  useWater(state, now, drawing, water);
  const drips = Math.min(Math.max(state.lane.tokens / state.lane.period, DRIPS_MIN), DRIPS_MAX);
  const drip = { animationDuration: `${1 / drips}s` };
  const hasTap = state.lane.algorithm === "token_bucket" && !isInterval(state.lane);
  return (
    <svg ref={drawing} class="pg-vessel is-unknown" viewBox="0 0 180 224" aria-hidden="true">
      <clipPath id={id}>
        <path d={`${WALL} Z`} />
      </clipPath>
      {!isWindow(state.lane) && !isQueue && (
        <path class="pg-tap" d="M74 0 H106 V10 Q106 14 102 14 H96 V18 H84 V14 H78 Q74 14 74 10 Z" />
      )}
      <g class="pg-shaken">
        <path class="pg-glass" d={`${WALL} Z`} />
        {hasTap && <path class="pg-drip" style={drip} d="M90 18 q5 8 0 11 q-5 -3 0 -11 Z" />}
        <g clip-path={`url(#${id})`}>
          <g ref={water} class="pg-water">
            <path class="pg-wave back" d={WAVE} />
            <path class="pg-wave" d={WAVE} />
          </g>
        </g>
        <Marks limit={limitOf(state.lane)} />
        <path class="pg-wall" d={WALL} />
        <path class="pg-rim" d="M16 44 H164" />
        {isQueue && <path class="pg-spout" d="M84 204 V212 H96 V204" />}
      </g>
      {isQueue && <path class="pg-drip leak" style={drip} d="M90 206 q5 8 0 11 q-5 -3 0 -11 Z" />}
    </svg>
  );
}

/** Marks on the wall, one for each token if there are few. */
function Marks({ limit }: { readonly limit: number }): JSX.Element | null {
  if (!(limit >= 1)) return null;
  const count = Number.isInteger(limit) && limit <= MARKS_MAX ? limit : 4;
  const height = (part: number) => EMPTY_Y - part * (EMPTY_Y - FULL_Y);
  return (
    <g class="pg-marks">
      {Array.from({ length: count + 1 }, (_, index) => {
        const part = index / count;
        const y = height(part);
        // The wall is slanted.
        const x = 37 - part * 13;
        const isNamed = index === 0 || index === count || (count % 2 === 0 && index === count / 2);
        return (
          <g key={part}>
            <path d={`M${x + 2} ${y} h${isNamed ? 10 : 6}`} />
            {isNamed && (
              <text x={x - 5} y={y + 3.5}>
                {shortCount(limit * part)}
              </text>
            )}
          </g>
        );
      })}
    </g>
  );
}

/** Moves the water with every frame, and animates the requests since the last one. */
function useWater(
  state: LaneState,
  now: () => number,
  drawing: { current: SVGSVGElement | null },
  water: { current: SVGGElement | null },
): void {
  const shown = useRef({ state, part: Number.NaN, allowed: state.allowed, denied: state.denied, floatedAt: 0 });
  useFrame(() => {
    const at = now();
    const level = state.level(at);
    const limit = state.reading?.limit ?? 0;
    if (level === undefined || limit === 0 || drawing.current === null || water.current === null) return;
    const last = shown.current;
    if (last.state !== state) shown.current = { ...last, state, allowed: state.allowed, denied: state.denied };
    const left = Math.min(1, level / limit);
    const target = state.lane.algorithm === "leaky_bucket" ? 1 - left : left;
    const isThere = Number.isNaN(last.part) || isCalm() || Math.abs(target - last.part) < 0.002;
    const part = isThere ? target : last.part + (target - last.part) * EASE;
    const y = EMPTY_Y + 4 - part * (EMPTY_Y + 4 - FULL_Y);
    water.current.setAttribute("transform", `translate(0 ${y.toFixed(2)})`);
    drawing.current.classList.remove("is-unknown");
    drawing.current.classList.toggle("is-moving", left < 1);
    shown.current.part = part;
    react(shown.current, state, at, drawing.current, y);
  });
}

interface Shown {
  allowed: number;
  denied: number;
  floatedAt: number;
}

/** Shows grants as floating numbers, and shakes the bucket at denials. */
function react(shown: Shown, state: LaneState, at: number, drawing: SVGSVGElement, y: number): void {
  const [allowed, denied] = [state.allowed - shown.allowed, state.denied - shown.denied];
  if ((allowed <= 0 && denied <= 0) || at - shown.floatedAt < FLOATS_APART_MS) return;
  [shown.allowed, shown.denied, shown.floatedAt] = [state.allowed, state.denied, at];
  const sign = state.lane.algorithm === "leaky_bucket" ? "+" : "−";
  if (allowed > 0) float(drawing, `${sign}${formatCount(allowed * state.lane.cost)}`, "allowed", Math.min(y, 180));
  if (denied <= 0) return;
  // Denials come in groups: only the latest text stays.
  for (const old of drawing.querySelectorAll(".pg-float.denied")) old.remove();
  float(drawing, denied === 1 ? "✗ denied" : `✗ ${formatCount(denied)} denied`, "denied", 120);
  shake(drawing);
}

/** Shows a text that rises and fades. */
function float(drawing: SVGSVGElement, words: string, kind: string, y: number): void {
  const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
  text.textContent = words;
  text.setAttribute("class", `pg-float ${kind}`);
  text.setAttribute("x", "90");
  text.setAttribute("y", String(y));
  drawing.append(text);
  const rise = isCalm() ? "none" : "translateY(-30px)";
  const faded = text.animate([{ opacity: 1 }, { opacity: 1, offset: 0.4 }, { opacity: 0, transform: rise }], 900);
  faded.onfinish = () => text.remove();
}

function shake(drawing: SVGSVGElement): void {
  const wall = drawing.querySelector(".pg-wall");
  const color = getComputedStyle(drawing).getPropertyValue("--denied");
  wall?.animate([{ stroke: color }, { stroke: color, offset: 0.6 }, {}], 700);
  if (isCalm()) return;
  const moves = [0, -4, 4, -3, 2, 0].map((x) => ({ transform: `translateX(${x}px)` }));
  drawing.querySelector(".pg-shaken")?.animate(moves, 320);
}
