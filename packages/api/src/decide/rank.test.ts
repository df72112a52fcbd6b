import { describe, expect, it } from "vitest";
import { testPod, testPolicy } from "../../../agent/src/eviction/testing/rounds.ts";
import type { RankKeyName } from "./policy.ts";
import { comparisonOf, differenceOf, type Rankable, rankOrder } from "./rank.ts";

const one = (name: string, changes = {}, scope: string | null = null): Rankable => ({
  pod: testPod(name, changes),
  scope,
});

const katalyst = testPolicy().ranking;
const classFirst: readonly RankKeyName[] = ["qosLevel", "qosClass", "priority", "scope"];

describe("the comparison of two pods", () => {
  it.each<[string, Rankable, Rankable, string, string]>([
    [
      "QoS level",
      one("a", { qosLevel: "reclaimed_cores", priority: 9 }),
      one("b", { priority: 1 }),
      "reclaimed_cores | shared_cores",
      "QoS level shared_cores over reclaimed_cores",
    ],
    [
      "QoS class",
      one("a", { qosClass: "BestEffort", priority: 9 }),
      one("b", { qosClass: "Guaranteed" }),
      "BestEffort | Guaranteed",
      "QoS class Guaranteed over BestEffort",
    ],
    ["priority", one("a", { priority: -5 }), one("b"), "-5 | 0", "priority 0 over -5"],
    ["scope", one("a", {}, "cpu"), one("b", {}, "memory"), "cpu | memory", "scope memory over cpu"],
    ["name", one("a"), one("b"), "a | b", "by name, all else is equal"],
  ])("is decided by the first key that differs: %s", (name, a, b, values, difference) => {
    const compared = comparisonOf(classFirst, a, b);
    const deciding = compared.filter(({ result }) => result === "decides");
    expect(deciding.map((key) => `${key.name}: ${key.values.join(" | ")}`)).toEqual([`${name}: ${values}`]);
    const index = compared.indexOf(deciding[0]!);
    expect(compared.slice(0, index).every(({ result }) => result === "equal")).toBe(true);
    expect(compared.slice(index + 1).every(({ result }) => result === "notCompared")).toBe(true);
    expect(rankOrder(classFirst)(a, b)).toBeLessThan(0);
    expect(differenceOf(classFirst, a, b)).toBe(difference);
  });

  it("counts values as equal that rank alike: all QoS levels but reclaimed_cores, all scopes but katalyst's", () => {
    const compared = comparisonOf(
      katalyst,
      one("a", { qosLevel: "dedicated_cores" }, "disk-io"),
      one("b", { qosLevel: "shared_cores" }, "rss"),
    );
    const byName = new Map(compared.map((key) => [key.name, key]));
    expect(byName.get("QoS level")).toEqual({
      name: "QoS level",
      values: ["dedicated_cores", "shared_cores"],
      result: "equal",
    });
    expect(byName.get("scope")?.result).toBe("equal");
    expect(byName.get("name")?.result).toBe("decides");
  });

  it("of a pod with itself decides nothing", () => {
    expect(comparisonOf(katalyst, one("a"), one("a")).every(({ result }) => result === "equal")).toBe(true);
  });

  it("compares only the keys it is given, in their order", () => {
    const best = one("best", { qosClass: "BestEffort", priority: 100 });
    const burstable = one("burstable", { qosClass: "Burstable", priority: 0 });
    const namesOf = (ranking: readonly RankKeyName[]) =>
      comparisonOf(ranking, best, burstable).map(({ name }) => name);
    expect(rankOrder(katalyst)(best, burstable)).toBeGreaterThan(0);
    expect(namesOf(katalyst)).not.toContain("QoS class");
    expect(differenceOf(katalyst, burstable, best)).toBe("priority 100 over 0");
    expect(rankOrder(classFirst)(best, burstable)).toBeLessThan(0);
    expect(rankOrder(["scope"])(best, burstable)).toBeLessThan(0);
    expect(differenceOf(["scope"], best, burstable)).toBe("by name, all else is equal");
  });
});
