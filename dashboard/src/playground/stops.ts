/** Slider stops: fine for small values, coarse for large ones. */

/** 1 to 20 one by one, then in steps of about a fifth, up to `most`. */
export function stopsUpTo(most: number): readonly number[] {
  const stops: number[] = [];
  for (let value = 1; value <= Math.min(20, most); value++) stops.push(value);
  for (let scale = 10; scale <= most; scale *= 10) {
    for (const step of [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8]) {
      const value = step * scale;
      if (value > 20 && value <= most) stops.push(value);
    }
  }
  return stops;
}

/** The index of the nearest stop, by ratio. */
export function nearestStop(stops: readonly number[], value: number): number {
  if (!(value > 0)) return 0;
  const far = (stop: number) => Math.abs(Math.log(stop / value));
  let nearest = 0;
  stops.forEach((stop, index) => {
    if (far(stop) < far(stops[nearest]!)) nearest = index;
  });
  return nearest;
}
