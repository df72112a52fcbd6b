import { expect, it } from "vitest";
import { containerRows, markRows, readingRows } from "./exported.ts";
import type { Mark } from "./marks.ts";
import { rowsOf } from "./rows.ts";
import type { Signal } from "./signals.ts";
import { barsOfAll, eventAt } from "./testing.ts";

const range = { from: 10_000, to: 30_000 };
const time = (second: number) => new Date(second * 1_000).toISOString();

it("has the marks in the range", () => {
  const pod = { uid: "1", namespace: "default", name: "web" };
  const mark = (id: number, at: number, more: object = {}) =>
    ({ id, at, kind: "evictionSelected", title: "why", ...more }) as unknown as Mark;
  const marks = [mark(1, 9_999), mark(2, 10_000, { pod, plugin: "p", round: 7 }), mark(3, 30_001)];
  expect(markRows(marks, range)).toEqual([
    { Time: time(10), What: "Eviction", About: "why", Pod: "default/web", Plugin: "p", Round: 7 },
  ]);
});

it("has the readings in the range, without the gaps between them", () => {
  const signal: Signal = {
    ...{ key: "k", plugin: "p", scope: "memory", unit: "bytes", operator: "greaterThan" },
    at: [5_000, 10_000, 10_001, 20_000, 25_000],
    observed: [1, 2, null, 3, null],
    threshold: [9, 9, null, 9, 9],
    met: ["none", "none", "none", "hard", "none"],
  };
  const found = readingRows([signal], range);
  expect(found.map(({ Time, Observed, Met }) => [Time, Observed, Met])).toEqual([
    [time(10), 2, "none"],
    [time(20), 3, "hard"],
    // The plugin reported no value.
    [time(25), null, "none"],
  ]);
  expect(found[0]).toMatchObject({ Plugin: "p", Signal: "memory", Threshold: 9, Unit: "bytes" });
});

it("has the runs of containers of the shown pods in the range", () => {
  const pod = (name: string) => ({ uid: name, namespace: "default", name });
  const container = (id: string) => ({ id, name: "main", kind: "container" as const });
  const pods = barsOfAll([
    eventAt(1, { pod: pod("web"), container: container("web-1") }),
    eventAt(20, {
      ...{ pod: pod("web"), container: container("web-1"), type: "ContainerDied" },
      ...{ exitCode: 137, reason: "OOMKilled" },
    }),
    eventAt(40, { pod: pod("web"), container: container("web-2") }),
    eventAt(2, { pod: pod("db"), container: container("db-1") }),
  ]);
  const all = { range, filter: "web", expanded: new Set(["web"]) };
  expect(containerRows(rowsOf(pods, ["web", "db"], all), range)).toEqual([
    {
      ...{ Pod: "default/web", Container: "main", Started: time(1), Exited: time(20) },
      ...{ "Exit code": 137, Reason: "OOMKilled" },
    },
  ]);
});
