import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { expect, it } from "vitest";
import { withDriverProblems } from "./driver-problems.ts";
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
  refused: { mine: "too long" },
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

it("a driver has the problems of its devices, slices and claims; other plugins keep theirs", () => {
  const rows = [
    pluginRow({ name: "gpu.example.com", type: "DRAPlugin", problems: ["its own"] }),
    pluginRow({ name: "gpu.example.com", problems: ["a reporter's"] }),
    pluginRow({ name: "other.example.com", type: "DRAPlugin" }),
  ];
  expect(withDriverProblems(rows, [driver], [claims]).map(({ problems }) => problems)).toEqual([
    [
      "its own",
      "1 device is quarantined, and not published",
      "the API server refuses ResourceSlice mine: too long",
      "ResourceSlice theirs of another client is in one of its pools",
      "the kubelet refused its DRA plugin: name taken",
    ],
    ["a reporter's"],
    [],
  ]);
});
