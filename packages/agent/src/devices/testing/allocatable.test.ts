import type { KubeObject } from "@nodekeeper/core/kube";
import { expect, test } from "vitest";
import { type Device, encodeSlice, type SliceSpec, type SliceVersion } from "../index.ts";
import { allocatable } from "./allocatable.ts";

const node = "worker-1";
let made = 0;

function slice(
  { name = `slice-${made++}`, generation = 1, count = 1, pool = "p", version = "v1" as SliceVersion },
  content: (string | Device)[] | (SliceSpec["sharedCounters"] & object),
  more: Partial<SliceSpec> = {},
): KubeObject {
  const isCounters = content.some((item) => typeof item === "object" && "counters" in item);
  const devices = () => content.map((item) => (typeof item === "string" ? { name: item } : item)) as Device[];
  return encodeSlice(
    version,
    { name },
    {
      driver: "gpu.example.com",
      nodeName: node,
      pool: { name: pool, generation, resourceSliceCount: count },
      ...(isCounters
        ? { sharedCounters: content as SliceSpec["sharedCounters"] & object }
        : { devices: devices() }),
      ...more,
    },
  );
}
const consumer = (name: string, value: string, counterSet = "set"): Device => ({
  name,
  consumesCounters: [{ counterSet, counters: { memory: { value } } }],
});
const set = { name: "set", counters: { memory: { value: "8Gi" } } };

test.each<[string, KubeObject[], string[], string | undefined]>([
  [
    "a complete pool gives all",
    [slice({ count: 2 }, ["a"]), slice({ count: 2 }, ["b"])],
    ["a", "b"],
    undefined,
  ],
  ["a missing slice empties its pool", [slice({ count: 2 }, ["a"])], [], "1 slices of 2 are there"],
  ["so does one too many", [slice({}, ["a"]), slice({}, ["b"])], [], "2 slices of 1 are there"],
  [
    "one slice of a newer generation hides all others",
    [slice({ count: 2, generation: 2 }, ["a"]), slice({ count: 2 }, ["b"])],
    [],
    "1 slices of 2 are there",
  ],
  [
    "older generations do not count",
    [slice({ generation: 2 }, ["a"]), slice({ count: 7 }, ["b"])],
    ["a"],
    undefined,
  ],
  ["a device twice", [slice({ count: 2 }, ["a"]), slice({ count: 2 }, ["a"])], [], "device a is duplicated"],
  [
    "taints repel, all but None",
    [
      slice({}, [
        { name: "a", taints: [{ key: "k", effect: "None" }] },
        { name: "b", taints: [{ key: "k", effect: "NoSchedule" }] },
        { name: "c", taints: [{ key: "k", effect: "NoExecute" }] },
      ]),
    ],
    ["a"],
    undefined,
  ],
  [
    "counters",
    [slice({ count: 2 }, [consumer("a", "8Gi"), consumer("b", "9Gi")]), slice({ count: 2 }, [set])],
    ["a"],
    undefined,
  ],
  [
    "unknown counters spoil the pool",
    [slice({ count: 2 }, ["a", consumer("b", "1", "other")]), slice({ count: 2 }, [set])],
    [],
    "device b consumes unknown other/memory",
  ],
  [
    "a counter set twice",
    [slice({ count: 2 }, [set]), slice({ count: 2 }, [set])],
    [],
    "counter set set is duplicated",
  ],
  ["other nodes' slices", [slice({}, ["a"], { nodeName: "worker-2" })], [], undefined],
  ["v1beta1", [slice({ version: "v1beta1" }, ["a"])], ["a"], undefined],
])("%s", (_, slices, devices, reason) => {
  const answer = allocatable(slices, node);
  expect(answer.devices).toEqual(devices);
  expect(answer.pools.find(({ state }) => state !== "complete")?.reason).toBe(reason);
});

test("order is that of the slices' names, which is the scheduler's", () => {
  const slices = [slice({ name: "00002", count: 2 }, ["b"]), slice({ name: "00001", count: 2 }, ["a"])];
  expect(allocatable(slices, node).devices).toEqual(["a", "b"]);
});
