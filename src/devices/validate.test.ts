import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkPools, type Device, type DevicePool, defaultValidation } from "./index.ts";
import { bad, good, memory } from "./rule-cases.ts";
import { anyDevice, namesUpTo, poolOf } from "./testing.ts";

/** The fields that a device breaks a rule in. */
function fieldsOf(device: Partial<Device>, nodes: DevicePool["nodes"] = { kind: "thisNode" }): string[] {
  const pool: DevicePool = {
    name: "pool",
    nodes,
    sharedCounters: [memory],
    devices: [{ name: "gpu", ...device }],
  };
  return checkPools([pool]).problems.map(({ field }) => field);
}

test.each(good)("%s: good", (_, device, nodes) => {
  expect(fieldsOf(device, nodes)).toEqual([]);
});

test.each(bad)("%s: refused", (_, device, fields, nodes) => {
  expect(fieldsOf(device, nodes)).toEqual(fields);
});

describe("checkPools", () => {
  test("any good device passes, and bad ones among them are held back alone", () => {
    const spoiled = fc.constantFrom(...bad.filter(([, , , nodes]) => !nodes).map(([, device]) => device));
    fc.assert(
      fc.property(
        fc.array(fc.tuple(anyDevice("x"), fc.option(spoiled, { freq: 3 })), { maxLength: 20 }),
        (parts) => {
          const devices = parts.map(([device, spoil], at) => ({
            ...(spoil ?? device),
            name: spoil?.name ?? `gpu-${at}`,
          }));
          const wanted = devices.filter((_, at) => !parts[at]![1]).map(({ name }) => name);
          const answer = checkPools([{ ...poolOf(devices), sharedCounters: [memory] }]);
          expect(answer.pools[0]!.devices.map(({ device }) => device.name)).toEqual(wanted);
          expect(answer.quarantined).toBe(devices.length - wanted.length);
          expect(new Set(answer.problems.map(({ device }) => device)).size).toBeLessThanOrEqual(
            answer.quarantined,
          );
        },
      ),
    );
  });

  test("of devices of one name in a pool the first is kept; in another pool the name is free", () => {
    const first = { name: "gpu", attributes: { a: { int: 1 } } };
    const answer = checkPools([poolOf([first, "gpu", "nic"], "one"), poolOf(["gpu"], "two")]);
    expect(answer.pools.map(({ devices }) => devices.map(({ device }) => device))).toEqual([
      [first, { name: "nic" }],
      [{ name: "gpu" }],
    ]);
    expect(answer.problems).toEqual([
      { pool: "one", device: "gpu", field: "name", message: "a device of this name is there already" },
    ]);
  });

  test.each([
    ["a bad name", { name: "No Pool" }, "name"],
    ["a long name", { name: "x/".repeat(127) }, "name"],
    [
      "a bad selector",
      { nodes: { kind: "selector", selector: { nodeSelectorTerms: [] } } },
      "nodeSelector.nodeSelectorTerms",
    ],
    [
      "two terms",
      { nodes: { kind: "selector", selector: { nodeSelectorTerms: [{}, {}] } } },
      "nodeSelector.nodeSelectorTerms",
    ],
  ] as [string, Partial<DevicePool>, string][])(
    "a pool with %s is refused, the others go on",
    (_, part, field) => {
      const answer = checkPools([{ ...poolOf(["a", "b"]), ...part }, poolOf(["c"], "good")]);
      expect(answer.pools.map(({ name }) => name)).toEqual(["good"]);
      expect(answer.problems).toMatchObject([{ field }]);
      expect(answer.quarantined).toBe(2);
    },
  );

  test("a bad counter set takes the devices that need it along", () => {
    const user = {
      name: "user",
      consumesCounters: [{ counterSet: "broken", counters: { a: { value: "1" } } }],
    };
    const broken = { name: "broken", counters: { a: { value: "?" } } };
    const answer = checkPools([{ ...poolOf([user, "other"]), sharedCounters: [broken, memory] }]);
    expect(answer.pools[0]!.devices.map(({ device }) => device.name)).toEqual(["other"]);
    expect(answer.pools[0]!.counterSets.map(({ set }) => set.name)).toEqual(["memory"]);
    expect(answer.problems.map(({ device, field }) => [device, field])).toEqual([
      [undefined, "sharedCounters[broken].counters[a].value"],
      ["user", "consumesCounters[0].counterSet"],
    ]);
  });

  test("20,000 devices in one message are fine; beyond the bound they are held back, and few are named", () => {
    const pool = poolOf(namesUpTo(20_000));
    expect(checkPools([pool])).toMatchObject({ quarantined: 0, problems: [] });
    const answer = checkPools([pool], { ...defaultValidation, maxDevices: 15_000, maxProblems: 10 });
    expect(answer.pools[0]!.devices).toHaveLength(15_000);
    expect(answer.quarantined).toBe(5_000);
    expect(answer.problems).toHaveLength(10);
    expect(answer.problems[0]!.message).toMatch(/more devices than allowed/);
  });
});
