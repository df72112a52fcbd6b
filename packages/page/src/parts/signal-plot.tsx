import { useMemo, useRef, useState } from "preact/hooks";
import { quantity, shown, at as timeText } from "../text.ts";
import { PluginLink } from "./plugin-links.tsx";
import { type Day, dayText, readingText, type Signal, stepsOf, valueRange } from "./signal-day.ts";

interface Props {
  signal: Signal;
  day: Day;
  range: { from: number; to: number };
  /** Whether its plugin is named. */
  isNamed?: boolean;
}

const WIDTH = 1_440;
const HEIGHT = 100;
const MINUTE_MS = 60_000;

/**
 * A signal over a day: observed values as steps, the threshold as a dashed line, and hatching for times without a
 * reading. The arrow keys and the pointer select a reading, which is shown below in words.
 */
export function SignalPlot({ signal, day, range, isNamed = false }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [chosen, setChosen] = useState<number>();
  const time = Math.min(Math.max(chosen ?? range.to, range.from), range.to);
  const { low, high } = useMemo(() => valueRange(day.readings), [day]);
  const x = (at: number) => round(((at - range.from) / (range.to - range.from)) * WIDTH);
  const y = (value: number) => round(HEIGHT - ((value - low) / (high - low)) * HEIGHT);
  const shapes = useMemo(() => {
    const steps = (of: "observed" | "threshold") =>
      stepsOf(
        day.readings.map(({ from, to, [of]: value }) => ({
          from: x(from),
          to: x(to),
          y: value === null ? null : y(value),
        })),
      );
    return { observed: steps("observed"), threshold: steps("threshold") };
  }, [day, range, low, high]);
  const onKeyDown = (event: KeyboardEvent) => {
    const to = timeAfter(event.key, time, range);
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    setChosen(to);
  };
  const name = shown(signal.scope || "value", 120);
  const reading = readingText(day, signal, time);
  return (
    <figure class="signal-plot">
      <figcaption>
        <b>{name}</b>{" "}
        {isNamed && (
          <>
            of <PluginLink name={signal.plugin} />{" "}
          </>
        )}
        <small>{dayText(day, signal)}</small>
      </figcaption>
      <div
        ref={box}
        class="signal-box"
        role="slider"
        tabIndex={0}
        aria-label={`${name}${isNamed ? ` of ${shown(signal.plugin)}` : ""} over 24 hours`}
        aria-valuemin={Math.floor(range.from / MINUTE_MS)}
        aria-valuemax={Math.floor(range.to / MINUTE_MS)}
        aria-valuenow={Math.floor(time / MINUTE_MS)}
        aria-valuetext={reading}
        onKeyDown={onKeyDown}
        onPointerMove={({ clientX }) => {
          const { left, width } = box.current!.getBoundingClientRect();
          setChosen(range.from + ((clientX - left) / width) * (range.to - range.from));
        }}
        onPointerLeave={() => setChosen(undefined)}
      >
        {day.gaps.map(({ from, to }, at) => (
          <i
            key={at}
            class="gap"
            style={{ left: `${(x(from) / WIDTH) * 100}%`, width: `${((x(to) - x(from)) / WIDTH) * 100}%` }}
          />
        ))}
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
          {day.readings
            .filter(({ met }) => met !== "none")
            .map(({ from, to, met }, at) => (
              <rect
                key={at}
                class={met}
                x={x(from)}
                width={Math.max(x(to) - x(from), 1)}
                y="0"
                height={HEIGHT}
              />
            ))}
          <path class="threshold" d={shapes.threshold} />
          <path class="observed" d={shapes.observed} />
          {chosen !== undefined && <path class="cursor" d={`M${x(time)} 0V${HEIGHT}`} />}
        </svg>
        <span class="top">{quantity(high, signal.unit)}</span>
        <span class="bottom">{quantity(low, signal.unit)}</span>
      </div>
      <p class="signal-axis">
        {/* Not a live region: it changes every minute, and the slider announces what the keys read. */}
        <span>{timeText(range.from)}</span> <span>{reading}</span>
      </p>
    </figure>
  );
}

/** Returns the time that a key moves to. Undefined if it does not move. */
function timeAfter(key: string, time: number, { from, to }: Props["range"]): number | undefined {
  const steps: Readonly<Record<string, number>> = {
    ArrowLeft: -1,
    ArrowDown: -1,
    ArrowRight: 1,
    ArrowUp: 1,
    PageDown: -60,
    PageUp: 60,
  };
  if (key === "Home") return from;
  if (key === "End") return to;
  const step = steps[key];
  return step === undefined ? undefined : Math.min(Math.max(time + step * MINUTE_MS, from), to);
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
