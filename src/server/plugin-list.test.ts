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

it("shows a reporter that is registered once", () => {
  const running = { ...lost, state: "running", stoppedAt: undefined } as const;
  expect(listPlugins([registered("ReporterPlugin")], [running])).toMatchObject([
    { type: "ReporterPlugin", state: "registered", contentBytes: 3 },
  ]);
});
