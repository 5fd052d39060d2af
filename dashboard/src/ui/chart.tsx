/** Chart in the colours of the page. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

interface ChartProps {
  /** Text alternative for screen readers. */
  readonly label: string;
  readonly height: number;
  readonly data: uPlot.AlignedData;
  /**
   * Options of uPlot, by the colours of the page; called again when the scheme changes. Must be a stable function: the
   * chart is created anew for another one.
   */
  readonly options: (colour: (name: string) => string) => Omit<uPlot.Options, "width" | "height">;
}

export function Chart({ label, height, data, options }: ChartProps): JSX.Element {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot>(undefined);
  const scheme = useScheme();
  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const style = getComputedStyle(element);
    const drawn = new uPlot(
      {
        ...options((name) => resolve(style, element, name)),
        width: element.clientWidth,
        height,
        // Its own legend does not handle names chosen by users.
        legend: { show: false },
      },
      data,
      element,
    );
    chart.current = drawn;
    const watch = new ResizeObserver(() => drawn.setSize({ width: element.clientWidth, height }));
    watch.observe(element);
    return () => {
      watch.disconnect();
      drawn.destroy();
    };
    // Data is set below; the scheme changes the colours.
  }, [options, height, scheme]);
  useEffect(() => chart.current?.setData(data), [data]);
  return <div ref={place} role="img" aria-label={label} style={{ height: `${height}px`, overflow: "hidden" }} />;
}

/** The current value of a colour such as `--allowed`. */
function resolve(style: CSSStyleDeclaration, element: HTMLElement, name: string): string {
  const before = element.style.color;
  element.style.color = `var(${name})`;
  const colour = style.color;
  element.style.color = before;
  return colour;
}

/** A number that changes when the page turns light or dark. */
function useScheme(): number {
  const [times, setTimes] = useState(0);
  useEffect(() => {
    const again = () => setTimes((times) => times + 1);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", again);
    addEventListener("schemechange", again);
    return () => {
      dark.removeEventListener("change", again);
      removeEventListener("schemechange", again);
    };
  }, []);
  return times;
}
