import { describe, expect, it } from "vitest";
import { countStates, type Device, gridDevices } from "./device-state.ts";

function device(name: string, changed: Partial<Device> = {}): Device {
  return { pool: "p", name, attributes: {}, taints: [], slices: ["s"], claims: [], ...changed };
}

const registered = { kubelet: "registered" } as const;
const states = (devices: Device[], claims: Parameters<typeof gridDevices>[2] = registered) =>
  gridDevices({ problems: [] }, devices, claims).map(({ name, state }) => `${name} ${state}`);

describe("gridDevices", () => {
  it("what is wrong with a device comes before who holds it", () => {
    expect(
      states([
        device("a"),
        device("b", { claims: ["default/train"] }),
        device("c", { taints: ["k:NoSchedule"], claims: ["default/train"] }),
        device("d", { unhealthy: "", taints: ["k:NoSchedule"], claims: ["default/train"] }),
      ]),
    ).toEqual(["a free", "b held", "c tainted", "d unhealthy"]);
  });

  it.each([
    ["registered", "free"],
    ["waiting", "free"],
    ["refused", "reported"],
    ["ownPlugin", "reported"],
    ["none", "reported"],
  ] as const)("with the kubelet's plugin %s, a device without a claim is %s", (kubelet, state) => {
    expect(states([device("a")], { kubelet })).toEqual([`a ${state}`]);
  });

  it("a device is reported while claims are unknown, or the agent prepares none", () => {
    const grid = gridDevices({ problems: [] }, [device("a")], undefined);
    expect(grid).toMatchObject([{ name: "a", state: "reported" }]);
  });

  it("has devices that are not published first, each once with all that is wrong", () => {
    const problem = (field: string, name?: string) => ({
      pool: "p",
      ...(name === undefined ? {} : { device: name }),
      field,
      message: "is invalid",
    });
    const problems = [
      problem("name", "x"),
      problem("capacity", "x"),
      problem("taints", "a"),
      problem("pool"),
    ];
    const grid = gridDevices({ problems }, [device("a")], registered);
    expect(grid.map(({ key, state, problem: why }) => [key, state, why])).toEqual([
      ["p/x", "quarantined", "name: is invalid; capacity: is invalid"],
      ["p/a", "free", undefined],
    ]);
  });

  it("counts states that there are, trouble first", () => {
    const devices = [device("a"), device("b"), device("c", { unhealthy: "hot" })];
    const grid = gridDevices({ problems: [] }, devices, registered);
    expect(countStates(grid)).toEqual([
      { state: "unhealthy", count: 1 },
      { state: "free", count: 2 },
    ]);
  });
});
