/** A chart, in the colours of the page. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

interface ChartProps {
  /** What it shows, for those who cannot see it. */
  readonly label: string;
  readonly height: number;
  readonly data: uPlot.AlignedData;
  /**
   * How it is drawn, by the colours of the page; made anew when the scheme changes. It must stay the same function
   * from one rendering to the next, or the chart begins again.
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
        // Its own legend is not made for names that others have chosen.
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
    // New data is drawn below; the scheme changes colours.
  }, [options, height, scheme]);
  useEffect(() => chart.current?.setData(data), [data]);
  return <div ref={place} role="img" aria-label={label} style={{ height: `${height}px`, overflow: "hidden" }} />;
}

/** The colour that a name such as `--allowed` stands for now. */
function resolve(style: CSSStyleDeclaration, element: HTMLElement, name: string): string {
  const before = element.style.color;
  element.style.color = `var(${name})`;
  const colour = style.color;
  element.style.color = before;
  return colour;
}

/** Changes whenever the page turns light or dark. */
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
