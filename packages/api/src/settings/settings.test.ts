import { describe, expect, it } from "vitest";
import { settings } from "./settings.ts";

// Tuning of in-tree plugins, which has no flags.
const tuning = [
  "eviction.systemMemory.freeMinimum",
  "eviction.systemMemory.workloadPressure",
  "eviction.systemMemory.podPressure",
  "eviction.systemMemory.pressedPods",
  "eviction.systemMemory.meanPressure",
  "eviction.systemMemory.pressureDuration",
  "eviction.systemMemory.workloadCgroup",
  "eviction.systemMemory.detectionPeriod",
  "eviction.systemMemory.cooldown",
  "eviction.systemMemory.victimMinimumShare",
  "eviction.systemMemory.ranking",
  "eviction.systemMemory.gracePeriod",
  "eviction.systemMemory.reclaimedGracePeriod",
  "eviction.numaMemory.lowGuard",
  "eviction.numaMemory.minGap",
  "eviction.numaMemory.lowReserve",
  "eviction.numaMemory.largestReserveShare",
  "eviction.numaMemory.reclaimedCounts",
  "eviction.numaMemory.allCounts",
  "eviction.numaMemory.dangerCounts",
  "eviction.numaMemory.victimMinimumShare",
  "eviction.numaMemory.ranking",
  "eviction.numaMemory.gracePeriod",
  "eviction.numaMemory.reclaimedGracePeriod",
  "eviction.rssOveruse.rateThreshold",
  "eviction.rssOveruse.labels",
  "eviction.rootfsPressure.minimumFree",
  "eviction.rootfsPressure.minimumInodesFree",
  "eviction.rootfsPressure.minimumCapacity",
  "eviction.rootfsPressure.podMinimumUsed",
  "eviction.rootfsPressure.podMinimumInodes",
  "eviction.rootfsPressure.gracePeriod",
  "eviction.rootfsOveruse.sharedThreshold",
  "eviction.rootfsOveruse.reclaimedThreshold",
  "eviction.rootfsOveruse.sharedNamespaces",
  "eviction.rootfsOveruse.mostPods",
  "eviction.rootfsOveruse.gracePeriod",
  "eviction.pidOveruse.threshold",
  "eviction.pidOveruse.gracePeriod",
  "eviction.systemCpu.loadUpper",
  "eviction.systemCpu.loadLower",
  "eviction.systemCpu.usageUpper",
  "eviction.systemCpu.usageLower",
  "eviction.systemCpu.looks",
  "eviction.systemCpu.metShare",
  "eviction.systemCpu.cooldown",
  "eviction.systemCpu.gracePeriod",
  "eviction.reclaimedResources.thresholds",
  "eviction.reclaimedResources.softThresholds",
  "eviction.reclaimedResources.tolerance",
  "eviction.reclaimedResources.gracePeriod",
  "eviction.reclaimedResources.skipZeroResources",
];

describe("the list of settings", () => {
  it("gives each setting a unique variable and, except lists of objects and tuning, a unique flag", () => {
    const flags = settings.flatMap(({ flagName }) => flagName ?? []);
    const variables = settings.flatMap(({ envNames }) => envNames);
    expect(new Set(flags).size).toBe(flags.length);
    expect(new Set(variables).size).toBe(variables.length);
    expect(settings.filter(({ flagName }) => !flagName).map(({ path }) => path)).toEqual([
      ...tuning,
      "reporting.additionalKinds",
    ]);
    // A Service called "nodekeeper" or "nodekeeper-..." adds such variables to every pod in its namespace.
    const ofServices = /_SERVICE_HOST$|_SERVICE_PORT(_|$)|_PORT(_\d|$)/;
    expect(variables.filter((name) => ofServices.test(name))).toEqual([]);
  });

  it("names each variable by one rule, and keeps those of other programs as aliases", () => {
    for (const { path, flagName, envNames } of settings) {
      const words = flagName ?? path.replaceAll(/([a-z])([A-Z])/g, "$1-$2").replaceAll(".", "-");
      expect([path, envNames[0]]).toEqual([path, `NODEKEEPER_${words.replaceAll("-", "_").toUpperCase()}`]);
    }
    expect(settings.flatMap(({ path, envNames }) => envNames.slice(1).map((name) => [path, name]))).toEqual([
      ["nodeName", "NODE_NAME"],
      ["kube.kubeconfig", "KUBECONFIG"],
      ["runtime.endpoint", "CONTAINER_RUNTIME_ENDPOINT"],
    ]);
  });

  it("applies exactly these without a restart", () => {
    expect(settings.filter(({ isLive }) => isLive).map(({ path }) => path)).toEqual([
      "log.level",
      "devices.wipeDelay",
      "devices.taintDelay",
      "devices.minWriteInterval",
      "devices.kubeletPlugin.callTimeout",
      "eviction.syncPeriod",
      "eviction.callTimeout",
      "eviction.outOfTurnRounds",
      "eviction.dryRunPlugins",
      "eviction.fallbackPlugins",
      "eviction.burst",
      "eviction.ranking",
      "eviction.cooldown",
      "eviction.conditionTransitionPeriod",
      "eviction.taintEffects",
      "eviction.releaseMargin",
      "eviction.longestRelease",
      "eviction.failedEvictionPause",
      "eviction.forgetPluginAfter",
      "eviction.limits.window",
      "eviction.limits.perNode",
      "eviction.limits.perNamespace",
      "eviction.limits.perOwner",
      "eviction.skip.labels",
      "eviction.skip.annotations",
      "eviction.skip.daemonSets",
      "eviction.grace.shortest",
      "eviction.grace.longest",
      "eviction.grace.allowZero",
      "eviction.killer",
      "eviction.killerRules",
      ...tuning,
      "eviction.policies.files",
      "eviction.policies.enabled",
      "eviction.records.maxAge",
      "eviction.records.maxSize",
      "reporting.collectInterval",
      "reporting.callTimeout",
      "reporting.pluginGracePeriod",
      "reporting.minWriteInterval",
      "reporting.resyncInterval",
    ]);
  });
});
