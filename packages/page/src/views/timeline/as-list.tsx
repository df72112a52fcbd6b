import { useState } from "preact/hooks";
import { shown, at as timeText } from "../../text.ts";
import { type Bar, endOf, isWithin, type PodBars } from "./bars.ts";
import { lifeText, nameOfPod } from "./detail.tsx";
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
  if (within.length === 0) {
    const what = gapsOf(marks, range).length > 0 ? "was recorded" : "happened to the node";
    return <p>Nothing {what} in this stretch of time.</p>;
  }
  return (
    <table>
      <caption>
        What happened, newest first{within.length > MOST ? `: the last ${MOST} of ${within.length}` : ""}
      </caption>
      <thead>
        <tr>
          <th scope="col">Time</th>
          <th scope="col">What</th>
          <th scope="col">Pod or plugin</th>
        </tr>
      </thead>
      <tbody>
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
              <td>{mark.pod ? nameOfPod(mark.pod) : shown(mark.plugin ?? "")}</td>
            </tr>
          ))}
      </tbody>
    </table>
  );
}

function Signals({ signals, range }: AsListProps) {
  if (signals.length === 0) return null;
  return (
    <table>
      <caption>Signals</caption>
      <thead>
        <tr>
          <th scope="col">Signal (plugin)</th>
          <th scope="col">Last reading</th>
          <th scope="col">Met</th>
        </tr>
      </thead>
      <tbody>
        {signals.map((signal) => {
          const periods = metPeriods(signal).filter(({ from, to }) => from <= range.to && to >= range.from);
          return (
            <tr key={signal.key}>
              <th scope="row">{nameOf(signal)}</th>
              <td>{valueText(signal, undefined)}</td>
              <td>
                {periods.length === 0
                  ? "not in this stretch"
                  : periods
                      .slice(-5)
                      .map(({ from, to, met }) => `${timeText(from)} to ${timeText(to)} (${met})`)
                      .join(", ")}
                {periods.length > 5 && `, and ${periods.length - 5} times before`}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function Pods({ rows, range, now, onSelect }: AsListProps) {
  const pods = rows.filter(({ container }) => container === undefined);
  if (pods.length === 0) return <p>No pods in this stretch of time.</p>;
  return (
    <table>
      <caption>
        Pods{pods.length > MOST ? `: the first ${MOST} of ${pods.length}, use the filter` : ""}
      </caption>
      <thead>
        <tr>
          <th scope="col">Pod</th>
          <th scope="col">Containers</th>
        </tr>
      </thead>
      <tbody>
        {pods.slice(0, MOST).map(({ key, pod }) => (
          <tr key={key}>
            <th scope="row">
              <button type="button" onClick={() => onSelect({ kind: "pod", uid: key })}>
                {nameOfPod(pod)}
              </button>
            </th>
            <td>
              {containersText(pod, range, now).map((text) => (
                <p key={text}>{text}</p>
              ))}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

// One line per container: its last run, and how often it exited.
function containersText(pod: PodBars, range: Range, now: number): string[] {
  const byName = new Map<string, Bar[]>();
  for (const bar of pod.bars.values()) {
    if (bar.kind !== "container" || !isWithin(bar, range)) continue;
    byName.set(bar.name, [...(byName.get(bar.name) ?? []), bar]);
  }
  return [...byName].map(([name, bars]) => {
    const bad = bars.filter((bar) => ["failed", "oom"].includes(endOf(bar))).length;
    return `${shown(name)}: ${lifeText(bars.at(-1)!, now)}${bad > 0 ? `; failed ${bad} ${bad === 1 ? "time" : "times"}` : ""}`;
  });
}
