import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkPools, type Device, type DevicePool, defaultValidation } from "../index.ts";
import { bad, good, memory } from "../testing/rule-cases.ts";
import { anyDevice, driver, namesUpTo, poolOf } from "../testing/slice-store.ts";

/** The fields that a device breaks a rule in. */
function fieldsOf(device: Partial<Device>): string[] {
  const pool: DevicePool = {
    name: "pool",
    sharedCounters: [memory],
    devices: [{ name: "gpu", ...device }],
  };
  return checkPools(driver, [pool]).problems.map(({ field }) => field);
}

test.each(good)("%s: good", (_, device) => {
  expect(fieldsOf(device)).toEqual([]);
});

test.each(bad)("%s: refused", (_, device, fields) => {
  expect(fieldsOf(device)).toEqual(fields);
});

describe("checkPools", () => {
  test("any good device passes, and bad ones among them are quarantined alone", () => {
    const spoiled = fc.constantFrom(...bad.map(([, device]) => device));
    fc.assert(
      fc.property(
        fc.array(fc.tuple(anyDevice("x"), fc.option(spoiled, { freq: 3 })), { maxLength: 20 }),
        (parts) => {
          const devices = parts.map(([device, spoil], at) => ({
            ...(spoil ?? device),
            name: spoil?.name ?? `gpu-${at}`,
          }));
          const wanted = devices.filter((_, at) => !parts[at]![1]).map(({ name }) => name);
          const answer = checkPools(driver, [{ ...poolOf(devices), sharedCounters: [memory] }]);
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
    const answer = checkPools(driver, [poolOf([first, "gpu", "nic"], "one"), poolOf(["gpu"], "two")]);
    expect(answer.pools.map(({ devices }) => devices.map(({ device }) => device))).toEqual([
      [first, { name: "nic" }],
      [{ name: "gpu" }],
    ]);
    expect(answer.problems).toEqual([
      { pool: "one", device: "gpu", field: "name", message: "duplicates the name of an earlier device" },
    ]);
  });

  test.each([
    ["a bad name", { name: "No Pool" }, "name"],
    ["a long name", { name: "x/".repeat(127) }, "name"],
    [
      "a partition type without domain",
      { fields: { partitionTypeAttribute: "model" } },
      "partitionTypeAttribute",
    ],
    ["an unknown operation", { fields: { skipNodeOperations: ["Sleep"] } }, "skipNodeOperations"],
    [
      "a prepare that is skipped alone",
      { fields: { skipNodeOperations: ["NodePrepareResources"] } },
      "skipNodeOperations",
    ],
  ] as [string, Partial<DevicePool>, string][])(
    "a pool with %s is refused, the others are published",
    (_, part, field) => {
      const answer = checkPools(driver, [{ ...poolOf(["a", "b"]), ...part }, poolOf(["c"], "good")]);
      expect(answer.pools.map(({ name }) => name)).toEqual(["good"]);
      expect(answer.problems).toMatchObject([{ field }]);
      expect(answer.quarantined).toBe(2);
    },
  );

  test("a bad counter set quarantines the devices that need it", () => {
    const user = {
      name: "user",
      consumesCounters: [{ counterSet: "broken", counters: { a: { value: "1" } } }],
    };
    const broken = { name: "broken", counters: { a: { value: "?" } } };
    const answer = checkPools(driver, [{ ...poolOf([user, "other"]), sharedCounters: [broken, memory] }]);
    expect(answer.pools[0]!.devices.map(({ device }) => device.name)).toEqual(["other"]);
    expect(answer.pools[0]!.counterSets.map(({ set }) => set.name)).toEqual(["memory"]);
    expect(answer.problems.map(({ device, field }) => [device, field])).toEqual([
      [undefined, "sharedCounters[broken].counters[a].value"],
      ["user", "consumesCounters[0].counterSet"],
    ]);
  });

  test("counter sets of one name are quarantined, and all that consume them", () => {
    const user = {
      name: "user",
      consumesCounters: [{ counterSet: "memory", counters: { left: { value: "1" } } }],
    };
    const answer = checkPools(driver, [{ ...poolOf([user, "other"]), sharedCounters: [memory, memory] }]);
    expect(answer.pools[0]!.counterSets).toEqual([]);
    expect(answer.pools[0]!.devices.map(({ device }) => device.name)).toEqual(["other"]);
    expect(answer.problems.map(({ device, field }) => [device, field])).toEqual([
      [undefined, "sharedCounters[memory].name"],
      [undefined, "sharedCounters[memory].name"],
      ["user", "consumesCounters[0].counterSet"],
    ]);
  });

  test("a name in the driver's own domain is the same without it: the explicit one is published", () => {
    const explicit = `${driver}/model`;
    const device = {
      name: "gpu",
      attributes: { model: { string: "bare" }, [explicit]: { string: "explicit" }, other: { int: 1 } },
      capacity: { memory: { value: "1" }, [`${driver}/memory`]: { value: "2" } },
    };
    const answer = checkPools(driver, [poolOf([device])]);
    expect(answer.pools[0]!.devices.map((checked) => checked.device)).toEqual([
      {
        name: "gpu",
        attributes: { [explicit]: { string: "explicit" }, other: { int: 1 } },
        capacity: { [`${driver}/memory`]: { value: "2" } },
      },
    ]);
    expect(answer.problems.map(({ field }) => field)).toEqual(["attributes[model]", "capacity[memory]"]);
  });

  test.each([
    ["the full name", { [`${driver}/profile`]: { string: "half" } }, []],
    ["the name alone", { profile: { string: "half" } }, []],
    ["no such attribute", {}, ["attributes"]],
    ["no string", { profile: { int: 1 } }, ["attributes[profile]"]],
  ])("a device that consumes counters needs its partition type: %s", (_, attributes, fields) => {
    const consumer = {
      name: "gpu",
      attributes,
      consumesCounters: [{ counterSet: "memory", counters: { left: { value: "1" } } }],
    };
    const pool = {
      ...poolOf([consumer as Device, "plain"]),
      fields: { partitionTypeAttribute: `${driver}/profile` },
      sharedCounters: [memory],
    };
    expect(checkPools(driver, [pool]).problems.map(({ field }) => field)).toEqual(fields);
  });

  test("20,000 devices in one message are fine; beyond the bound they are quarantined, and few are named", () => {
    const pool = poolOf(namesUpTo(20_000));
    expect(checkPools(driver, [pool])).toMatchObject({ quarantined: 0, problems: [] });
    const answer = checkPools(driver, [pool], { ...defaultValidation, maxDevices: 15_000, maxProblems: 10 });
    expect(answer.pools[0]!.devices).toHaveLength(15_000);
    expect(answer.quarantined).toBe(5_000);
    expect(answer.problems).toHaveLength(10);
    expect(answer.problems[0]!.message).toMatch(/more devices than allowed/);
  });
});
