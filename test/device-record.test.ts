import { describe, expect, it } from "vitest";
import {
  brokenSteps,
  type DeviceUse,
  type DriverStep,
  handovers,
  overlaps,
} from "./e2e/support/node/device-record.ts";

// The rules by which device-chaos judges a node.

const use = (claim: string, from: number, to?: number, device = "device-0"): DeviceUse => ({
  container: `container-${claim}`,
  pid: 1,
  device,
  claim,
  from,
  to,
});
const step = (at: number, name: DriverStep["step"], claim: string): DriverStep => ({
  at,
  step: name,
  claim,
  device: "device-0",
});

describe("containers of two claims with one device", () => {
  it.each<[string, DeviceUse[], number]>([
    ["one after another", [use("a", 1, 5), use("b", 5, 9)], 0],
    ["on two devices", [use("a", 1, 5), use("b", 2, 9, "device-1")], 0],
    ["of one claim", [use("a", 1, 5), use("a", 2, 9)], 0],
    ["for a millisecond", [use("a", 1, 5), use("b", 4, 9)], 1],
    ["within another", [use("a", 1, 9), use("b", 3, 5)], 1],
    ["while both run", [use("a", 1), use("b", 3)], 1],
    ["three", [use("a", 1, 9), use("b", 3, 5), use("c", 4, 10)], 3],
  ])("%s", (_, uses, count) => {
    expect(overlaps(uses)).toHaveLength(count);
  });
});

describe("steps of a driver", () => {
  it.each<[string, DriverStep, number]>([
    ["unprepared after the exit", step(5, "unprepare", "a"), 0],
    ["unprepared before the exit", step(4, "unprepare", "a"), 1],
    ["unprepared while it runs", step(9, "unprepare", "b"), 1],
    ["prepared", step(3, "prepare", "b"), 0],
    ["prepared while it is another's", step(3, "taken", "b"), 1],
  ])("%s", (_, each, count) => {
    expect(brokenSteps([use("a", 1, 5), use("b", 6)], [each])).toHaveLength(count);
  });
});

it("a device changes hands from one claim to the next", () => {
  const uses = [use("a", 1, 5), use("b", 8, 9), use("b", 10, 11), use("c", 12, 13, "device-1")];
  expect(handovers(uses)).toEqual([3]);
});
