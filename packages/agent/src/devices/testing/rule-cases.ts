import type { Device } from "../index.ts";

/* Devices at and beyond the limits of every rule, for tests here and against real API servers. */

/** The counter set that pools with these devices have. */
export const memory = { name: "memory", counters: { left: { value: "8Gi" }, right: { value: "8Gi" } } };

const many = <Value>(count: number, value: Value) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`a${at}`, value]));
const text = (length: number) => ({ string: "x".repeat(length) });
const policy = (requestPolicy: object): Partial<Device> => ({
  allowMultipleAllocations: true,
  capacity: { memory: { value: "8Gi", requestPolicy } },
});
const taint = { key: "a", effect: "NoSchedule" };
const consume = (counterSet: string, ...names: string[]) => ({
  counterSet,
  counters: Object.fromEntries(names.map((name) => [name, { value: "1" }])),
});

/** A description, and the device's fields besides its name. */
export const good: [string, Partial<Device>][] = [
  ["a name of 63", { name: "x".repeat(63) }],
  ["32 attributes", { attributes: many(32, { bool: true }) }],
  ["48 values", { attributes: many(24, { ints: [1, 2] }) }],
  ["an empty string", { attributes: { a: text(0) } }],
  ["64 bytes", { attributes: { a: text(64) } }],
  ["a domain", { attributes: { [`${"d".repeat(63)}/${"i".repeat(32)}`]: text(1) } }],
  ["versions", { attributes: { a: { versions: ["1.0.0-rc.1+b", "0.0.0"] } } }],
  ["16 taints", { taints: Array(16).fill(taint) }],
  ["a taint for all to see", { taints: [{ key: "example.com/a", value: "v", effect: "None" }] }],
  ["two counter sets' worth", { consumesCounters: [consume("memory", "left", "right")] }],
  ["values to choose from", policy({ default: "1Gi", validValues: ["1024Mi", "2Gi", "8Gi"] })],
  [
    "compatibility groups",
    { consumesCounters: [{ ...consume("memory", "left"), compatibilityGroups: ["a", "b"] }] },
  ],
  ["a range in fractions", policy({ default: "3", validRange: { min: "0", max: "4500m", step: "1500m" } })],
  ["a range", policy({ default: "2Gi", validRange: { min: "1Gi", max: "4Gi", step: "512Mi" } })],
  ["a default alone", policy({ default: "1Gi" })],
  ["conditions", { bindingConditions: ["a", "b"], bindingFailureConditions: ["example.com/c"] }],
  [
    "a mapping",
    {
      capacity: { cores: { value: "8" } },
      nodeAllocatableResources: {
        cpu: { mapping: { capacityKey: "cores", capacityMultiplier: "2" } },
        memory: { overhead: { perPod: "64Mi", perContainer: "0" } },
      },
    },
  ],
];

/** Like `good`, with the fields that must be reported. */
export const bad: [string, Partial<Device>, string[]][] = [
  ["no name", { name: "" }, ["name"]],
  ["a name of 200", { name: "x".repeat(200) }, ["name"]],
  ["a name with a dot", { name: "gpu.0" }, ["name"]],
  [
    "33 attributes and capacities",
    { attributes: many(32, { bool: true }), capacity: { c: { value: "1" } } },
    ["attributes"],
  ],
  ["49 values", { attributes: { ...many(24, { ints: [1, 2] }), b: { bool: true } } }, ["attributes"]],
  ["an attribute without value", { attributes: { a: {} } }, ["attributes[a]"]],
  ["an attribute with two", { attributes: { a: { bool: false, int: 0 } } }, ["attributes[a]"]],
  ["an empty list", { attributes: { a: { strings: [] } } }, ["attributes[a].strings"]],
  ["65 bytes", { attributes: { a: text(65) } }, ["attributes[a].string"]],
  [
    "65 bytes in 33 characters",
    { attributes: { a: { string: `x${"é".repeat(32)}` } } },
    ["attributes[a].string"],
  ],
  ["four parts", { attributes: { a: { version: "1.2.3.4" } } }, ["attributes[a].version"]],
  ["a leading v", { attributes: { a: { versions: ["v1.2.3"] } } }, ["attributes[a].versions"]],
  ["a name with a dash", { attributes: { "a-b": text(1) } }, ["attributes[a-b]"]],
  [
    "an identifier of 33",
    { capacity: { ["x".repeat(33)]: { value: "1" } } },
    [`capacity[${"x".repeat(33)}]`],
  ],
  ["two slashes", { attributes: { "a/b/c": text(1) } }, ["attributes[a/b/c]"]],
  ["no quantity", { capacity: { a: { value: "lots" } } }, ["capacity[a].value"]],
  [
    "a policy without sharing",
    { capacity: { a: { value: "1", requestPolicy: {} } } },
    ["capacity[a].requestPolicy"],
  ],
  [
    "both policies",
    policy({ default: "1", validValues: ["1"], validRange: { min: "1" } }),
    ["capacity[memory].requestPolicy"],
  ],
  ["values without default", policy({ validValues: ["1"] }), ["capacity[memory].requestPolicy.default"]],
  [
    "a default that is no value",
    policy({ default: "3", validValues: ["1", "2"] }),
    ["capacity[memory].requestPolicy.default"],
  ],
  [
    "values that descend",
    policy({ default: "1", validValues: ["2", "1"] }),
    ["capacity[memory].requestPolicy.validValues[1]"],
  ],
  [
    "a value too large",
    policy({ default: "9Gi", validValues: ["9Gi"] }),
    ["capacity[memory].requestPolicy.validValues[0]"],
  ],
  [
    "a range without min",
    policy({ default: "1", validRange: {} }),
    ["capacity[memory].requestPolicy.validRange.min"],
  ],
  [
    "a default below min",
    policy({ default: "1", validRange: { min: "2" } }),
    ["capacity[memory].requestPolicy.default"],
  ],
  [
    "a max below min",
    policy({ default: "4", validRange: { min: "4", max: "3" } }),
    ["capacity[memory].requestPolicy.validRange.max", "capacity[memory].requestPolicy.default"],
  ],
  [
    "a default off step",
    policy({ default: "3", validRange: { min: "2", step: "2" } }),
    ["capacity[memory].requestPolicy.default"],
  ],
  [
    "a step of zero",
    policy({ default: "2", validRange: { min: "2", step: "0" } }),
    ["capacity[memory].requestPolicy.validRange.step"],
  ],
  ["17 taints", { taints: Array(17).fill(taint) }, ["taints"]],
  ["a taint's key", { taints: [{ ...taint, key: "" }] }, ["taints[0].key"]],
  ["a taint's value", { taints: [{ ...taint, value: "a b" }] }, ["taints[0].value"]],
  ["a taint's effect", { taints: [{ ...taint, effect: "Maybe" }] }, ["taints[0].effect"]],
  ["a taint's time", { taints: [{ ...taint, timeAdded: "yesterday" }] }, ["taints[0].timeAdded"]],
  [
    "an unknown counter set",
    { consumesCounters: [consume("other", "left")] },
    ["consumesCounters[0].counterSet"],
  ],
  [
    "an unknown counter",
    { consumesCounters: [consume("memory", "middle")] },
    ["consumesCounters[0].counters"],
  ],
  [
    "a counter set twice",
    { consumesCounters: [consume("memory", "left"), consume("memory", "left")] },
    ["consumesCounters[1].counterSet"],
  ],
  ["no counters", { consumesCounters: [consume("memory")] }, ["consumesCounters[0].counters"]],
  ["3 counter sets", { consumesCounters: Array(3).fill(consume("memory", "left")) }, ["consumesCounters"]],
  ["conditions without failures", { bindingConditions: ["a"] }, ["bindingConditions"]],
  [
    "a condition on both sides",
    { bindingConditions: ["a"], bindingFailureConditions: ["a"] },
    ["bindingFailureConditions"],
  ],
  [
    "5 conditions",
    { bindingConditions: ["a", "b", "c", "d", "e"], bindingFailureConditions: ["f"] },
    ["bindingConditions"],
  ],
  [
    "an extended resource",
    { nodeAllocatableResources: { "example.com/gpu": { mapping: { deviceMultiplier: "1" } } } },
    ["nodeAllocatableResources[example.com/gpu]"],
  ],
  [
    "neither mapping nor overhead",
    { nodeAllocatableResources: { cpu: {} } },
    ["nodeAllocatableResources[cpu]"],
  ],
  [
    "a multiplier of zero",
    { nodeAllocatableResources: { cpu: { mapping: { deviceMultiplier: "0" } } } },
    ["nodeAllocatableResources[cpu].mapping.deviceMultiplier"],
  ],
  [
    "both kinds of mapping",
    {
      capacity: { c: { value: "1" } },
      nodeAllocatableResources: {
        cpu: { mapping: { capacityKey: "c", capacityMultiplier: "1", deviceMultiplier: "1" } },
      },
    },
    ["nodeAllocatableResources[cpu].mapping"],
  ],
  [
    "an unknown capacity",
    { nodeAllocatableResources: { cpu: { mapping: { capacityKey: "c", capacityMultiplier: "1" } } } },
    ["nodeAllocatableResources[cpu].mapping.capacityKey"],
  ],
  [
    "an overhead of nothing",
    { nodeAllocatableResources: { cpu: { overhead: {} } } },
    ["nodeAllocatableResources[cpu].overhead"],
  ],
  [
    "a negative overhead",
    { nodeAllocatableResources: { cpu: { overhead: { perPod: "-1" } } } },
    ["nodeAllocatableResources[cpu].overhead.perPod"],
  ],
  [
    "3 compatibility groups",
    { consumesCounters: [{ ...consume("memory", "left"), compatibilityGroups: ["a", "b", "c"] }] },
    ["consumesCounters[0].compatibilityGroups"],
  ],
  [
    "a compatibility group twice",
    { consumesCounters: [{ ...consume("memory", "left"), compatibilityGroups: ["a", "a"] }] },
    ["consumesCounters[0].compatibilityGroups"],
  ],
];
