import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { exportedTime, type Row, useExport } from "../export/exports.ts";
import { nodeNow } from "../node-clock.ts";
import { shown } from "../text.ts";
import { Problem, Waiting } from "./notice.tsx";
import { bySeverity, DAY_MS, type Day, dayOf, type Signal } from "./signal-day.ts";
import { SignalPlot } from "./signal-plot.tsx";
import { useAnswer } from "./use-answer.ts";

const MINUTE_MS = 60_000;
// With more, the page would be slow to draw.
const MOST = 16;

interface Props {
  /** Shows only the signals of this plugin. Default: those of all plugins, each with its plugin's name. */
  plugin?: string;
  /** Shown if no reading is recorded. */
  none: ComponentChildren;
}

/** What eviction plugins observed against their thresholds in the last 24 hours, those that met one first. */
export function SignalDays({ plugin, none }: Props) {
  // The agent adds one point a minute.
  const version = Math.floor(nodeNow() / MINUTE_MS);
  const { value, problem } = useAnswer("eviction/signals", { plugin }, version);
  const { range, days } = useMemo(() => {
    const to = nodeNow();
    const range = { from: to - DAY_MS, to };
    const days = (value?.signals ?? []).map((signal) => ({ signal, day: dayOf(value!, signal, range) }));
    return { range, days: bySeverity(days.filter(({ day }) => day.readings.length > 0)) };
  }, [value]);
  const drawn = days.slice(0, MOST);
  useExport("Last 24 hours", () => drawn.flatMap(readingRows));
  return (
    <>
      {problem && (
        <Problem problem={problem}>{value && "These are the readings as they were before."}</Problem>
      )}
      {!value && !problem && <Waiting>Reading the last 24 hours.</Waiting>}
      {value && days.length === 0 && <p>{none}</p>}
      {days.length > 0 && <p class="quiet">The most severe value of each minute.</p>}
      <div class="signals">
        {drawn.map(({ signal, day }) => (
          <SignalPlot
            key={`${signal.plugin}\n${signal.scope}`}
            {...{ signal, day, range }}
            isNamed={plugin === undefined}
          />
        ))}
      </div>
      {days.length > MOST && <p>{days.length - MOST} more signals are shown with their plugins.</p>}
    </>
  );
}

function readingRows({ signal, day }: { signal: Signal; day: Day }): Row[] {
  return day.readings.map(({ from, to, observed, threshold, met }) => ({
    Plugin: shown(signal.plugin),
    Signal: shown(signal.scope),
    From: exportedTime(from),
    To: exportedTime(to),
    Observed: observed,
    Threshold: threshold,
    Unit: signal.unit ?? null,
    Met: met,
  }));
}
