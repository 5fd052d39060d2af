/** Animation frames: drawing of values that change with time, without rendering components again. */

import { useEffect, useRef } from "preact/hooks";

/** Calls `draw` with every animation frame, at most once per `every` milliseconds. */
export function useFrame(draw: () => void, every = 0): void {
  const latest = useRef(draw);
  latest.current = draw;
  useEffect(() => {
    let last = Number.NEGATIVE_INFINITY;
    let frame = requestAnimationFrame(function again(now) {
      if (now - last >= every) {
        last = now;
        latest.current();
      }
      frame = requestAnimationFrame(again);
    });
    return () => cancelAnimationFrame(frame);
  }, [every]);
}

/** Returns whether the user prefers reduced motion. */
export function isCalm(): boolean {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** Sets a text if it differs. */
export function write(element: Element | null, text: string): void {
  if (element !== null && element.textContent !== text) element.textContent = text;
}

/** Clears a canvas and scales it to device pixels; undefined without a canvas. */
export function cleared(
  canvas: HTMLCanvasElement | null,
): { pen: CanvasRenderingContext2D; width: number; height: number } | undefined {
  const pen = canvas?.getContext("2d");
  if (canvas === null || pen === null || pen === undefined) return undefined;
  const { clientWidth: width, clientHeight: height } = canvas;
  const scale = devicePixelRatio;
  const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  return { pen, width, height };
}

const resolved = new Map<string, string>();
let scheme = "";

/** The current value of a colour such as `--allowed`, for a canvas. */
export function colour(name: string): string {
  const root = document.documentElement;
  const now = `${root.dataset["scheme"] ?? ""} ${matchMedia("(prefers-color-scheme: dark)").matches}`;
  if (now !== scheme) {
    scheme = now;
    resolved.clear();
  }
  let found = resolved.get(name);
  if (found === undefined) {
    const before = root.style.color;
    root.style.color = `var(${name})`;
    found = getComputedStyle(root).color;
    root.style.color = before;
    resolved.set(name, found);
  }
  return found;
}
