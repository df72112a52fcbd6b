import { sparkPoints } from "./spark-points.ts";

const WIDTH = 120;
const HEIGHT = 24;

/**
 * A small plot of values over time, oldest first. Screen readers read `text`, a description in words: "last 3 ms, at
 * most 12 ms".
 */
export function Sparkline({ values, text }: { values: readonly number[]; text: string }) {
  const points = sparkPoints(values, WIDTH, HEIGHT);
  const last = points.at(-1);
  return (
    <svg class="spark" role="img" aria-label={text} viewBox={`-2 -2 ${WIDTH + 4} ${HEIGHT + 4}`}>
      <title>{text}</title>
      <polyline points={points.map(({ x, y }) => `${x},${y}`).join(" ")} fill="none" />
      {last && <circle cx={last.x} cy={last.y} r="2" />}
    </svg>
  );
}
