import { evictionPolicyOf, type QosClass, type QosLevel } from "@nodekeeper/api/decide";
import { type AgentConfiguration, inTreeEvictionNames, readLeaf, settings } from "@nodekeeper/api/settings";
import { describe, expect, it } from "vitest";
import { loadConfiguration } from "../config/index.ts";
import { killerFor } from "../eviction/index.ts";
import { rankingMetrics } from "../intree/index.ts";

async function configured(flags: Record<string, string> = {}): Promise<AgentConfiguration> {
  return (await loadConfiguration({ flags, env: {}, hostname: "node-1" })).configuration;
}

describe("what an operator sets", () => {
  it("arrives: limits of 0 are none, times in the units of each module", async () => {
    const policy = evictionPolicyOf(
      await configured({
        evictionBurst: "-1",
        evictionLimitsPerNode: "0",
        evictionLimitsPerOwner: "3",
        evictionGraceShortest: "1500ms",
        evictionGraceLongest: "90s",
        evictionSkipDaemonSets: "false",
        evictionSkipLabels: "example.com/keep",
      }),
    );
    expect(policy).toMatchObject({
      burst: -1,
      limits: { perNode: null, perNamespace: null, perOwner: 3 },
      grace: { shortestSeconds: 2, longestSeconds: 90 },
      skip: { evictDaemonSetPods: true, labelKeys: ["example.com/keep"] },
    });
  });

  it("chooses killers by QoS level and class", async () => {
    const rules = "reclaimed_cores=deletion,BestEffort=containerStop";
    const { eviction } = await configured({ evictionKillerRules: rules });
    const killerOf = (qosLevel: QosLevel, qosClass: QosClass) => killerFor({ qosLevel, qosClass }, eviction);
    expect(killerOf("reclaimed_cores", "BestEffort")).toBe("deletion");
    expect(killerOf("shared_cores", "BestEffort")).toBe("containerStop");
    expect(killerOf("shared_cores", "Burstable")).toBe("evictionApi");
    await expect(configured({ evictionKillerRules: "system_cores=deletion" })).rejects.toMatchObject({
      code: "invalid",
    });
  });

  it("may rank by every metric there is, and enable or exclude every plugin, and no other", async () => {
    const ranking = settings.find(({ path }) => path === "eviction.systemMemory.ranking")!;
    expect(readLeaf(ranking, rankingMetrics)).toEqual(rankingMetrics);
    const names = ["*", ...inTreeEvictionNames, ...inTreeEvictionNames.map((name) => `-${name}`)];
    expect((await configured({ evictionInTreePlugins: names.join(",") })).eviction.inTreePlugins).toEqual(
      names,
    );
    await expect(configured({ evictionInTreePlugins: "*,-rss" })).rejects.toThrow(
      /eviction\.inTreePlugins: got \["\*","-rss"\], expected .* of system-memory-pressure-eviction-plugin/,
    );
  });
});
