/** A point of a small plot, in the units of its `width` and `height`. */
export interface SparkPoint {
  readonly x: number;
  readonly y: number;
}

/**
 * Returns the points of a small plot, oldest value at the left edge, zero at the bottom and the largest value at the
 * top. Negative and non-finite values are skipped.
 */
export function sparkPoints(values: readonly number[], width: number, height: number): SparkPoint[] {
  const usable = values.map((value) => (Number.isFinite(value) && value >= 0 ? value : undefined));
  const top = Math.max(...usable.map((value) => value ?? 0), 0);
  const step = values.length > 1 ? width / (values.length - 1) : 0;
  return usable.flatMap((value, at) =>
    value === undefined
      ? []
      : [{ x: round(at * step), y: round(height - (top === 0 ? 0 : (value / top) * height)) }],
  );
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
