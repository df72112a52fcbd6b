import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { expect, it } from "vitest";
import { withDriverProblems } from "./driver-problems.ts";
import type { PluginRow } from "./groups.ts";
import { pluginRow } from "./testing/rows.ts";

const driver: ApiAnswers["devices"][number] = {
  name: "gpu.example.com",
  isRegistered: true,
  state: "streaming",
  since: 0,
  protocol: "devices",
  reported: 2,
  devices: 1,
  pools: [],
  slices: [],
  foreign: ["theirs"],
  quarantined: 1,
  problems: [],
  refused: {},
  dropped: [],
};
const claims: ApiAnswers["claims"][number] = {
  driver: "gpu.example.com",
  kubelet: "refused",
  reason: "name taken",
  isPreparing: true,
  unhealthy: [],
  claims: [],
};

it("a driver also has the problems of its pools and claims; other plugins keep theirs", () => {
  const rows = [
    pluginRow({ name: "gpu.example.com", type: "DRAPlugin", problems: ["its own"] }),
    pluginRow({ name: "gpu.example.com", problems: ["a reporter's"] }),
    pluginRow({ name: "other.example.com", type: "DRAPlugin" }),
  ];
  expect(withDriverProblems(rows, [driver], [claims]).map(({ problems }) => problems)).toEqual([
    [
      "its own",
      "ResourceSlice theirs of another client is in one of its pools",
      "the kubelet refused its DRA plugin: name taken",
    ],
    ["a reporter's"],
    [],
  ]);
});

it("a problem of its claims that the driver is told of is there once", () => {
  const row = (driverProblems?: PluginRow["driverProblems"]) =>
    pluginRow({ name: "gpu.example.com", type: "DRAPlugin", driverProblems });
  const problem = "the driver did not prepare device n1/gpu-0";
  const ofClaims = { ...claims, kubelet: "registered", reason: undefined, problem } as const;
  const problemsOf = (shown: PluginRow) =>
    withDriverProblems([shown], [{ ...driver, foreign: [] }], [ofClaims])[0]!.problems;
  expect(problemsOf(row())).toEqual([problem]);
  expect(problemsOf(row([{ errorId: "NK1507", message: problem, since: 0 }]))).toEqual([]);
});
