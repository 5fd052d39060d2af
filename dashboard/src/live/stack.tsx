/** Stacked chart of groups by second. */

import type { JSX } from "preact";
import { useCallback, useMemo } from "preact/hooks";
import uPlot from "uplot";
import { Chart } from "../ui/chart.tsx";
import { type Group, SECONDS, stacked } from "./series.ts";

const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
/** Charts with this key share the cursor. */
const SYNC = "live";

interface StackProps {
  readonly label: string;
  readonly height: number;
  readonly groups: readonly Group[];
  readonly of: "allowed" | "denied";
  /** Called with the index of the second under the cursor, or undefined. Must be a stable function. */
  readonly onPoint: (at: number | undefined) => void;
}

export function Stack({ label, height, groups, of, onPoint }: StackProps): JSX.Element {
  // The largest sum is drawn first, the others over it.
  const data = useMemo(() => {
    const sums = stacked(groups.map((group) => group[of])).reverse();
    return [[...SECONDS], ...sums] as uPlot.AlignedData;
  }, [groups, of]);
  const colours = groups.map(({ colour }) => colour).join(" ");
  const options = useCallback(
    (colour: (name: string) => string) => optionsOf(colours.split(" ").reverse().map(colour), colour, onPoint),
    [colours, onPoint],
  );
  return <Chart label={label} height={height} data={data} options={options} />;
}

function optionsOf(
  colours: readonly string[],
  colour: (name: string) => string,
  onPoint: (at: number | undefined) => void,
): Omit<uPlot.Options, "width" | "height"> {
  const grid = { stroke: colour("--line"), width: 1 };
  const axis = { stroke: colour("--muted"), font: "12px system-ui, sans-serif", grid, ticks: { show: false } };
  const bars = uPlot.paths.bars?.({ size: [0.86, 64] });
  return {
    padding: [8, 16, 0, 0],
    scales: {
      // Half a second more at either end, so that the outer bars are complete.
      x: { time: false, range: () => [SECONDS[0]! - 0.5, 0.5] },
      y: { range: (_chart, _low, high) => [0, Math.max(high * 1.05, 1)] },
    },
    axes: [
      { ...axis, size: 24, splits: () => [-120, -90, -60, -30, 0], values: (_chart, splits) => splits.map(ago) },
      { ...axis, size: 44, space: 28, values: (_chart, splits) => splits.map((rate) => COMPACT.format(rate)) },
    ],
    series: [
      {},
      ...colours.map((fill) => ({
        fill,
        stroke: fill,
        width: 0,
        points: { show: false },
        ...(bars && { paths: bars }),
      })),
    ],
    cursor: { sync: { key: SYNC }, drag: { x: false, y: false }, points: { show: false }, y: false },
    hooks: { setCursor: [(chart) => onPoint(chart.cursor.idx ?? undefined)] },
  };
}

function ago(second: number): string {
  return second === 0 ? "now" : `−${-second} s`;
}
