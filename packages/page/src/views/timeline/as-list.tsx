import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { podName, shown, at as timeText } from "../../text.ts";
import { endOf, isWithin, type PodBars } from "./bars.ts";
import { lifeText } from "./detail.tsx";
import { gapsOf, gapText } from "./gaps.ts";
import { lookOf, type Mark } from "./marks.ts";
import type { Selection } from "./place.ts";
import { nameOf, valueText } from "./plot.tsx";
import type { Row } from "./rows.ts";
import type { Range } from "./scale.ts";
import { metPeriods, type Signal } from "./signals.ts";

export interface AsListProps {
  range: Range;
  now: number;
  marks: readonly Mark[];
  signals: readonly Signal[];
  rows: readonly Row[];
  onSelect(selection: Selection): void;
}

const MOST = 200;

/** The timeline as text in tables, for screen readers and copying. Rendered only while open. */
export function AsList(props: AsListProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="tl-list" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>As a list</summary>
      {isOpen && (
        <>
          <Gaps {...props} />
          <Marks {...props} />
          <Signals {...props} />
          <Pods {...props} />
        </>
      )}
    </details>
  );
}

function Gaps({ marks, range }: AsListProps) {
  const gaps = gapsOf(marks, range);
  if (gaps.length === 0) return null;
  return (
    <>
      <h3>Not observed, newest first</h3>
      <ul>
        {gaps
          .slice(-MOST)
          .reverse()
          .map((gap) => (
            <li key={gap.to}>{gapText(gap)}</li>
          ))}
      </ul>
    </>
  );
}

function Marks({ marks, range, onSelect }: AsListProps) {
  const within = marks.filter(({ at }) => at >= range.from && at <= range.to);
  if (within.length === 0) return <p>No marks are known in this stretch of time.</p>;
  return (
    <Table
      caption={`What happened, newest first${within.length > MOST ? `: the last ${MOST} of ${within.length}` : ""}`}
      columns={["Time", "What", "Pod or plugin"]}
    >
      {within
        .slice(-MOST)
        .reverse()
        .map((mark) => (
          <tr key={mark.id}>
            <td>
              <button type="button" onClick={() => onSelect({ kind: "mark", id: mark.id })}>
                {timeText(mark.at)}
              </button>
            </td>
            <td>
              {lookOf(mark.kind).word}: {shown(mark.title, 300)}
            </td>
            <td>{mark.pod ? shown(podName(mark.pod), 600) : shown(mark.plugin ?? "")}</td>
          </tr>
        ))}
    </Table>
  );
}

function Signals({ signals, range }: AsListProps) {
  if (signals.length === 0) return null;
  return (
    <Table caption="Signals" columns={["Signal (plugin)", "Last reading", "Met"]}>
      {signals.map((signal) => {
        const periods = metPeriods(signal).filter(({ from, to }) => from <= range.to && to >= range.from);
        return (
          <tr key={signal.key}>
            <th scope="row">{nameOf(signal)}</th>
            <td>{valueText(signal, undefined)}</td>
            <td>
              {periods.length === 0
                ? "not met in the known readings"
                : periods
                    .slice(-5)
                    .map(({ from, to, met }) => `${timeText(from)} to ${timeText(to)} (${met})`)
                    .join(", ")}
              {periods.length > 5 && `, and ${periods.length - 5} times before`}
            </td>
          </tr>
        );
      })}
    </Table>
  );
}

function Pods({ rows, range, now, onSelect }: AsListProps) {
  const pods = rows.filter(({ container }) => container === undefined);
  if (pods.length === 0) return <p>No pods are known in this stretch of time.</p>;
  return (
    <Table
      caption={`Pods${pods.length > MOST ? `: the first ${MOST} of ${pods.length}, use the filter` : ""}`}
      columns={["Pod", "Containers"]}
    >
      {pods.slice(0, MOST).map(({ key, pod }) => (
        <tr key={key}>
          <th scope="row">
            <button type="button" onClick={() => onSelect({ kind: "pod", uid: key })}>
              {shown(podName(pod), 600)}
            </button>
          </th>
          <td>
            {containersText(pod, range, now).map((text) => (
              <p key={text}>{text}</p>
            ))}
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Table({
  caption,
  columns,
  children,
}: {
  caption: string;
  columns: readonly string[];
  children: ComponentChildren;
}) {
  return (
    <table>
      <caption>{caption}</caption>
      <thead>
        <tr>
          {columns.map((title) => (
            <th key={title} scope="col">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  );
}

// One line per container: its last run, and how often it exited.
function containersText(pod: PodBars, range: Range, now: number): string[] {
  const within = [...pod.bars.values()].filter((bar) => bar.kind === "container" && isWithin(bar, range));
  return [...Map.groupBy(within, ({ name }) => name)].map(([name, bars]) => {
    const bad = bars.filter((bar) => ["failed", "oom"].includes(endOf(bar))).length;
    return `${shown(name)}: ${lifeText(bars.at(-1)!, now)}${bad > 0 ? `; failed ${bad} ${bad === 1 ? "time" : "times"}` : ""}`;
  });
}
