import { describe, expect, it } from "vitest";
import { type Claim, claimText, deviceText, holdersOf, rowOfDevice } from "./claim-text.ts";
import type { GridDevice } from "./device-state.ts";

const claim: Claim = {
  namespace: "default",
  name: "train",
  uid: "u",
  state: "prepared",
  devices: ["p/a"],
  updatedAt: 0,
  pods: ["default/train-0"],
};
const published = { pool: "p", name: "a", attributes: {}, taints: [], slices: [], claims: [], pods: [] };
const device = (changed: Partial<GridDevice>): GridDevice => ({
  key: "p/a",
  pool: "p",
  name: "a",
  state: "free",
  device: published,
  ...changed,
});

const none = holdersOf([]);

describe("texts of devices", () => {
  it("finds all claims of a device, each once", () => {
    const other = { ...claim, uid: "v", devices: ["p/b", "p/a", "p/a"] };
    const holders = holdersOf([claim, other]);
    expect(holders.get("p/a")).toEqual([claim, other]);
    expect(holders.get("p/b")).toEqual([other]);
    expect(holders.get("p/c")).toBeUndefined();
  });

  it("a claim is named with its pods, where they are known", () => {
    expect(claimText(claim)).toBe("claim default/train for pod default/train-0");
    expect(claimText({ ...claim, pods: [] })).toBe("claim default/train");
  });

  it("has the state, why, and who holds the device", () => {
    expect(deviceText(device({}), none)).toBe("free");
    expect(deviceText(device({ state: "held" }), holdersOf([claim]))).toBe(
      "held by claim default/train for pod default/train-0",
    );
    const unhealthy = { ...published, unhealthy: "too hot" };
    expect(deviceText(device({ state: "unhealthy", device: unhealthy }), none)).toBe("unhealthy: too hot");
    const tainted = { ...published, taints: ["k:NoSchedule"] };
    expect(deviceText(device({ state: "tainted", device: tainted }), none)).toBe("tainted k:NoSchedule");
    expect(deviceText(device({ state: "quarantined", problem: "name: is invalid" }), none)).toBe(
      "quarantined, not published: name: is invalid",
    );
  });
});

it("a device is exported with the claims and pods that hold it", () => {
  const held = device({ state: "held", device: { ...published, slices: ["s"], attributes: { model: "x" } } });
  expect(rowOfDevice(held, holdersOf([claim]))).toEqual({
    ...{
      Pool: "p",
      Device: "a",
      State: "held",
      About: "held by claim default/train for pod default/train-0",
    },
    ...{
      Claims: ["default/train"],
      Pods: ["default/train-0"],
      ResourceSlices: ["s"],
      Attributes: ["model=x"],
    },
  });
});
