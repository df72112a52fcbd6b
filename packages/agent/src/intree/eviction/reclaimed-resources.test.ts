import { NodekeeperError } from "@nodekeeper/core/lib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defaultInTreeEvictionSettings } from "../../assembly/testing/defaults.ts";
import type { ObservedPod } from "../../eviction/index.ts";
import type { Reading } from "../../host/index.ts";
import { amountsOf } from "../../pod-usage/index.ts";
import { inTreeSource } from "./in-tree-plugin.ts";
import {
  crossedThreshold,
  enoughFor,
  type ReclaimedResourceSettings,
  reclaimedResourcePressure,
} from "./reclaimed-resources.ts";
import { never, TestMachine, testPod, topQuestion } from "./testing/parts.ts";

const { reclaimedResources: defaults } = defaultInTreeEvictionSettings;

const cpu = "resource.katalyst.kubewharf.io/reclaimed_millicpu";
const memory = "resource.katalyst.kubewharf.io/reclaimed_memory";
const settings = (changes: Partial<ReclaimedResourceSettings>): ReclaimedResourceSettings => ({
  ...defaults,
  thresholds: [],
  ...changes,
});

describe("thresholds", () => {
  it.each([
    ["not above", { a: "50" }, { a: "10" }, { thresholds: ["a=5"] }, undefined],
    ["above", { a: "51" }, { a: "10" }, { thresholds: ["a=5"] }, ["hard", "a", 50, 51]],
    ["nothing lent", { a: "1" }, { a: "0" }, { thresholds: ["a=5"] }, ["hard", "a", 0, 1]],
    [
      "nothing lent, but to be skipped",
      { a: "1" },
      { a: "0" },
      { thresholds: ["a=5"], skipZeroResources: ["a"] },
      undefined,
    ],
    ["an unknown allocatable quantity", { a: "1" }, { b: "0" }, { thresholds: ["a=5"] }, undefined],
    ["an invalid allocatable quantity", { a: "1" }, { a: "a lot" }, { thresholds: ["a=5"] }, undefined],
    ["without a threshold", { a: "1000" }, { a: "1" }, {}, undefined],
    [
      "soft",
      { a: "15" },
      { a: "10" },
      { thresholds: ["a=5"], softThresholds: ["a=1.2"] },
      ["soft", "a", 12, 15],
    ],
    [
      "hard before soft",
      { a: "15", b: "60" },
      { a: "10", b: "10" },
      { thresholds: ["b=5"], softThresholds: ["a=1.2"] },
      ["hard", "b", 50, 60],
    ],
    [
      "hard before soft in the other order",
      { b: "15", a: "60" },
      { a: "10", b: "10" },
      { thresholds: ["a=5"], softThresholds: ["b=1.2"] },
      ["hard", "a", 50, 60],
    ],
    [
      "the largest factor",
      { a: "60", b: "100" },
      { a: "10", b: "10" },
      { thresholds: ["a=5", "b=5"] },
      ["hard", "b", 50, 100],
    ],
    ["the last of two rates", { a: "30" }, { a: "10" }, { thresholds: ["a=1", "a=5"] }, undefined],
    ["fractions", { a: "1500m" }, { a: "1" }, { thresholds: ["a=1.4"] }, ["hard", "a", 1.4, 1.5]],
  ] as [
    string,
    Record<string, string>,
    Record<string, string>,
    Partial<ReclaimedResourceSettings>,
    unknown,
  ][])("%s", (_, requested, allocatable, changes, expected) => {
    const crossed = crossedThreshold(amountsOf(requested), amountsOf(allocatable), settings(changes));
    expect(crossed && [crossed.metType, crossed.resource, crossed.threshold, crossed.requested]).toEqual(
      expected,
    );
  });

  it("do not depend on the order of resources", () => {
    const amounts = fc.dictionary(fc.constantFrom("a", "b", "c", "d"), fc.nat(100).map(String));
    const rates = fc.dictionary(
      fc.constantFrom("a", "b", "c", "d"),
      fc.double({ min: 0.1, max: 5, noNaN: true }),
    );
    const listOf = (table: Record<string, number>) => Object.entries(table).map((pair) => pair.join("="));
    const reversed = <T>(list: Record<string, T>) => Object.fromEntries(Object.entries(list).reverse());
    fc.assert(
      fc.property(amounts, amounts, rates, rates, (requested, allocatable, thresholds, softThresholds) => {
        const crossed = crossedThreshold(
          amountsOf(requested),
          amountsOf(allocatable),
          settings({ thresholds: listOf(thresholds), softThresholds: listOf(softThresholds) }),
        );
        const other = crossedThreshold(
          amountsOf(reversed(requested)),
          amountsOf(reversed(allocatable)),
          settings({
            thresholds: listOf(thresholds).reverse(),
            softThresholds: listOf(softThresholds).reverse(),
          }),
        );
        expect(other).toEqual(crossed);
        const isHard = Object.entries(thresholds).some(
          ([name, rate]) =>
            Number(requested[name] ?? 0) > rate * Number(allocatable[name] ?? Number.POSITIVE_INFINITY),
        );
        expect(crossed?.metType === "hard").toBe(isHard);
      }),
    );
  });
});

describe("ranking", () => {
  const requesting = (name: string, requested: number) => ({ ...testPod(name), requested });
  const names = (pods: readonly ObservedPod[]) => pods.map(({ pod }) => pod.name);

  it.each([
    [10, ["a"]],
    [9, ["a"]],
    [4, ["a", "b"]],
    [0, ["a", "b", "c"]],
    [99, ["a"]],
  ])("of soft pressure takes enough to get down to %i", (threshold, expected) => {
    const pods = [requesting("a", 5), requesting("b", 5), requesting("c", 4)];
    expect(names(enoughFor(pods, 14, threshold))).toEqual(expected);
  });
});

describe("the plugin", () => {
  const lent = (name: string, amount: string, phase = "Running") =>
    testPod(name, { qosLevel: "reclaimed_cores", phase, requests: [{ [cpu]: amount }] });
  const pods = [
    lent("small", "1k"),
    lent("large", "4k"),
    lent("other", "2k"),
    testPod("shared", { requests: [{ [cpu]: "100k" }] }),
    testPod("none", { qosLevel: "reclaimed_cores" }),
  ];

  function setup(changes: Partial<ReclaimedResourceSettings> = {}) {
    const machine = new TestMachine();
    const state = {
      allocatable: {
        state: "read",
        at: machine.clock.monotonic(),
        value: { [cpu]: "1k" },
        problems: [],
      } as Reading<Record<string, string>>,
    };
    const parts = machine.parts({ allocatable: () => state.allocatable });
    const plugin = inTreeSource(reclaimedResourcePressure, parts, () => ({ ...defaults, ...changes }));
    const top = async (scope = cpu, topN = 1) => {
      const answer = await plugin.getTopEvictionPods(pods, topQuestion(plugin.name, scope, topN), never);
      return { ...answer, pods: answer.pods.map(({ name }) => name) };
    };
    return { machine, plugin, state, top };
  }

  it("takes the largest of the reclaimed pods", async () => {
    const { plugin, top } = setup();
    expect(await plugin.thresholdMet(pods, never)).toEqual({
      metType: "hard",
      scope: cpu,
      thresholdValue: 5_000,
      observedValue: 7_000,
      operator: "greaterThan",
      gracePeriodSeconds: 0,
      condition: null,
      candidateUids: [],
    });
    expect(await top()).toEqual({ pods: ["large"], gracePeriodSeconds: 60 });
    expect((await top(cpu, 9)).pods).toEqual(["large", "other", "small"]);
    expect((await top("another")).pods).toEqual([]);
  });

  it("does not count what has ended", async () => {
    const { plugin } = setup();
    const ended = [...pods.slice(0, 1), lent("large", "4k", "Succeeded"), pods[2]!];
    expect((await plugin.thresholdMet(ended, never)).metType).toBe("none");
  });

  it("takes the tolerance and the grace period it is given", async () => {
    const { plugin, top } = setup({ tolerance: 7_000, gracePeriod: 0 });
    expect((await plugin.thresholdMet(pods, never)).gracePeriodSeconds).toBe(7);
    expect(await top()).toEqual({ pods: ["large"], gracePeriodSeconds: null });
  });

  it("of soft pressure names enough pods", async () => {
    const { plugin, top } = setup({ thresholds: [`${memory}=5`], softThresholds: [`${cpu}=2`] });
    expect((await plugin.thresholdMet(pods, never)).metType).toBe("soft");
    expect((await top(cpu, 0)).pods).toEqual(["large", "other"]);
  });

  it.each([
    ["missing", { state: "missing", at: 0, message: "no CustomNodeResource" }],
    ["failed", { state: "failed", at: 0, error: new NodekeeperError("unavailable", "away") }],
    ["too old", { state: "read", at: -301_000, value: { [cpu]: "1" }, problems: [] }],
  ] as [string, Reading<Record<string, string>>][])(
    "evicts no pod if allocatable is %s",
    async (_, allocatable) => {
      const { plugin, state, top } = setup();
      await plugin.thresholdMet(pods, never);
      state.allocatable = allocatable;
      expect((await plugin.thresholdMet(pods, never)).metType).toBe("none");
      expect((await top()).pods).toEqual([]);
    },
  );
});
