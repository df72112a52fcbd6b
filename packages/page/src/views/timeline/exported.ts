import { exportedTime, type Row } from "../../export/exports.ts";
import { podName, shown } from "../../text.ts";
import { isWithin } from "./bars.ts";
import { lookOf, type Mark } from "./marks.ts";
import type { Row as PodRow } from "./rows.ts";
import type { Range } from "./scale.ts";
import type { Signal } from "./signals.ts";

/** Returns the marks in a range as rows of an export, oldest first. */
export function markRows(marks: readonly Mark[], { from, to }: Range): Row[] {
  return marks
    .filter(({ at }) => at >= from && at <= to)
    .map(({ at, kind, title, pod, plugin, round }) => ({
      Time: exportedTime(at),
      What: lookOf(kind).word,
      About: shown(title, 1_000),
      Pod: pod ? shown(podName(pod), 600) : null,
      Plugin: plugin === undefined ? null : shown(plugin),
      Round: round ?? null,
    }));
}

/** Returns the readings of signals in a range as rows of an export. */
export function readingRows(signals: readonly Signal[], { from, to }: Range): Row[] {
  return signals.flatMap(({ plugin, scope, unit, at, observed, threshold, met }) =>
    at.flatMap((time, index) =>
      // Without a threshold it is a gap of the plot, which no round read.
      time < from || time > to || threshold[index] == null
        ? []
        : {
            Time: exportedTime(time),
            Plugin: shown(plugin),
            Signal: shown(scope),
            Observed: observed[index] ?? null,
            Threshold: threshold[index],
            Unit: unit ?? null,
            Met: met[index]!,
          },
    ),
  );
}

/** Returns the runs of containers of the shown pods in a range as rows of an export. */
export function containerRows(rows: readonly PodRow[], range: Range): Row[] {
  return rows
    .filter(({ container }) => container === undefined)
    .flatMap(({ pod }) =>
      [...pod.bars.values()]
        .filter((bar) => bar.kind === "container" && isWithin(bar, range))
        .map(({ name, from, to, exitCode, reason, end }) => ({
          Pod: shown(podName(pod), 600),
          Container: shown(name),
          Started: exportedTime(from),
          [end]: exportedTime(to),
          "Exit code": exitCode ?? null,
          Reason: shown(reason),
        })),
    );
}
