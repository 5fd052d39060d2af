/** Chart of denials over time. */

import type { JSX } from "preact";
import { useCallback, useMemo, useState } from "preact/hooks";
import uPlot from "uplot";
import { formatCount } from "../format.ts";
import { Chart } from "../ui/chart.tsx";
import { axisOf, sumOf, type Timeline } from "./timeline.ts";

/** Height of the list beside it; on a phone there is no list beside it. */
const HEIGHT = 330;
const HEIGHT_PHONE = 160;
/** Share of the slot that its bar takes, and its largest width in pixels. */
const BAR: readonly [number, number] = [0.8, 40];

interface TimelineProps {
  readonly timeline: Timeline;
  /** Description of the violations shown. */
  readonly of: string;
}

export function TimelineChart({ timeline, of }: TimelineProps): JSX.Element {
  const { starts, enforced, shadow, per, seconds } = timeline;
  const [pointed, setPointed] = useState<number>();
  // Stacked: the sum is drawn behind the enforced denials.
  const data = useMemo((): uPlot.AlignedData => {
    const sums = enforced.map((count, slot) => count + shadow[slot]!);
    return [starts.map((start) => start + seconds / 2), sums, [...enforced]];
  }, [timeline]);
  const options = useCallback((colour: (name: string) => string) => optionsOf(colour, seconds, setPointed), [seconds]);
  const slot = pointed !== undefined && pointed < starts.length ? pointed : undefined;
  const [denied, would] = slot === undefined ? [sumOf(enforced), sumOf(shadow)] : [enforced[slot]!, shadow[slot]!];
  const when = slot === undefined ? of : `the ${per} from ${timeText(starts[slot]!)} UTC`;
  return (
    <section class="panel" aria-labelledby="violations-timeline">
      <div class="panel-head">
        <h2 id="violations-timeline">Denials per {per}</h2>
        <p class="muted small">{when}</p>
      </div>
      <div class="row violations-legend">
        <span class="violations-entry denied">
          {formatCount(denied)} <span class="muted">denied</span>
        </span>
        <span class="violations-entry shadow">
          {formatCount(would)} <span class="muted">would be denied (shadow)</span>
        </span>
      </div>
      <Chart
        label={`Denials per ${per}, ${of}: ${formatCount(sumOf(enforced))} denied and ${formatCount(sumOf(shadow))} in shadow`}
        height={matchMedia("(max-width: 56rem)").matches ? HEIGHT_PHONE : HEIGHT}
        data={data}
        options={options}
      />
    </section>
  );
}

function timeText(unixSeconds: number): string {
  return new Date(unixSeconds * 1000).toISOString().slice(0, 16).replace("T", " ");
}

function optionsOf(
  colour: (name: string) => string,
  seconds: number,
  onPointed: (slot: number | undefined) => void,
): Omit<uPlot.Options, "width" | "height"> {
  const axis = {
    stroke: colour("--muted"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { stroke: colour("--line"), width: 1 },
  };
  const bars = uPlot.paths.bars!({ size: [BAR[0], BAR[1]] });
  const series = (fill: string): uPlot.Series => ({
    paths: bars,
    fill,
    stroke: fill,
    width: 0,
    points: { show: false },
  });
  return {
    tzDate: (unixSeconds) => uPlot.tzDate(new Date(unixSeconds * 1000), "Etc/UTC"),
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    scales: {
      x: { range: (_, min, max) => [min - seconds / 2, max + seconds / 2] },
      y: { range: (_, _min, max) => [0, Math.max(1, max * 1.1)] },
    },
    axes: [
      { ...axis, grid: { show: false }, values: (_, times) => axisOf(times) },
      // Whole numbers only.
      { ...axis, size: 56, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9] },
    ],
    series: [{}, series(colour("--shadow")), series(colour("--denied"))],
    hooks: { setCursor: [({ cursor }) => onPointed(cursor.idx ?? undefined)] },
  };
}
