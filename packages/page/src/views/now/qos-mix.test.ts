import { expect, it } from "vitest";
import { mixByLevel } from "./qos-mix.ts";

it("counts pods by level in the order of eviction, and by class", () => {
  const mix = [
    { qosLevel: "shared_cores" as const, qosClass: "Burstable" as const, pods: 3 },
    { qosLevel: "reclaimed_cores" as const, qosClass: "BestEffort" as const, pods: 2 },
    { qosLevel: "shared_cores" as const, qosClass: "Guaranteed" as const, pods: 1 },
    { qosLevel: "unknown" as const, qosClass: "BestEffort" as const, pods: 0 },
  ];
  expect(mixByLevel(mix)).toEqual([
    { level: "reclaimed_cores", pods: 2, classes: [2, 0, 0] },
    { level: "shared_cores", pods: 4, classes: [0, 3, 1] },
  ]);
  expect(mixByLevel([])).toEqual([]);
});
