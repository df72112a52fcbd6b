import { expect, it } from "vitest";
import type { PluginStatus } from "../plugins/index.ts";
import type { ReporterStatus } from "../reporting/index.ts";
import { listPlugins } from "./plugin-list.ts";

const lost: ReporterStatus = {
  name: "gpu",
  inTree: false,
  state: "stopped",
  endpoint: undefined,
  updatedAt: 1,
  stoppedAt: 2,
  contentBytes: 3,
  problems: [],
  lostReason: "its socket was removed",
  lastError: undefined,
};

function registered(type: string): PluginStatus {
  return { type, name: "gpu", registrationSocket: "/p/gpu.sock", state: "registered", since: 1, attempts: 1 };
}

it("shows a lost reporter beside a plugin of another type that has its name", () => {
  const rows = listPlugins([registered("DRAPlugin")], [lost]);
  expect(rows.map(({ type, state }) => `${type} ${state}`)).toEqual([
    "DRAPlugin registered",
    "ReporterPlugin lost",
  ]);
});

it("shows why a lost reporter's registration ended, before the last failed call", () => {
  expect(listPlugins([], [lost])).toMatchObject([{ state: "lost", error: "its socket was removed" }]);
  const failing = { ...lost, lastError: "GetReportContent: no answer within 10000 ms" };
  expect(listPlugins([], [failing])).toMatchObject([
    { error: "its socket was removed; GetReportContent: no answer within 10000 ms" },
  ]);
});

it("shows a reporter that is registered once", () => {
  const running = { ...lost, state: "running", stoppedAt: undefined, lostReason: undefined } as const;
  expect(listPlugins([registered("ReporterPlugin")], [running])).toMatchObject([
    { type: "ReporterPlugin", state: "registered", contentBytes: 3 },
  ]);
});

it("shows eviction plugins inside the agent, and the last call of one behind a socket", () => {
  const plugin = { endpoint: undefined, answeredAt: undefined, problems: [] };
  const rows = listPlugins(
    [registered("EvictionPlugin")],
    [],
    [],
    [
      { ...plugin, name: "gpu", inTree: false, lastError: "ThresholdMet: no answer" },
      { ...plugin, name: "memory", inTree: true, lastError: undefined, problems: ["NoExecute is refused"] },
    ],
  );
  expect(rows.map(({ name, state, error }) => [name, state, error])).toEqual([
    ["gpu", "registered", "ThresholdMet: no answer"],
    ["memory", "in-tree", undefined],
  ]);
  expect(rows.map(({ problems }) => problems)).toEqual([[], ["NoExecute is refused"]]);
});
