import { byteSize, decimal, duration, integer, text, textList } from "./leaf.ts";
import { liveInFile, section } from "./section.ts";

const rankingMetrics = ["qosLevel", "priority", "usage", "rss", "workingSet", "nodeUsage"] as const;
type RankingMetric = (typeof rankingMetrics)[number];

function ranking(initial: readonly RankingMetric[]) {
  return textList<RankingMetric>(
    [...initial],
    {
      pattern: new RegExp(`^(${rankingMetrics.join("|")})$`),
      expected: `some of ${rankingMetrics.join(", ")}`,
      placeholder: "<metric,...>",
      minItems: 1,
      maxItems: rankingMetrics.length,
    },
    { about: "Metrics by which pods are ranked, the most significant first." },
  );
}

const victimShare = () =>
  decimal(0.001, 0, 1, {
    about: "Pods that use less than this share of the memory under pressure are not candidates.",
  });
const victimCooldown = (initial: string, max: string) =>
  duration(initial, "0s", max, {
    about: "How long the plugin selects no further pod after one it selected was evicted.",
  });
const gracePeriod = (about: string, initial: string) =>
  duration(initial, "0s", "1h", { about: `${about} 0s: the grace period of the pod spec.` });

// "resource=5". The number is greater than 0 and not a percentage.
function resourceThresholds(initial: readonly string[], about: string) {
  return textList(
    [...initial],
    {
      pattern:
        /^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?=\d{1,6}(\.\d{1,6})?$/,
      except: /=0+(\.0+)?$/,
      expected: 'thresholds such as "example.com/cpus=5"',
      placeholder: "<resource=number,...>",
      maxItems: 32,
    },
    { about },
  );
}

const reclaimed = "resource.katalyst.kubewharf.io/reclaimed";

/** Settings of the in-tree eviction plugins, one section each. */
export const evictionPluginSections = liveInFile({
  systemMemory: section("system-memory-pressure-eviction-plugin: memory pressure on the node as a whole.", {
    freeMinimum: byteSize("0", "0", "16Ti", {
      about: "Free memory below which the node is under pressure, in addition to the kernel's watermarks.",
    }),
    workloadPressure: decimal(15, 0.1, 100, {
      about: "Memory PSI (some avg10, percent) of workloadCgroup from which on the pods' own PSI is checked.",
    }),
    podPressure: decimal(1, 0, 100, {
      about: "Memory PSI (some avg10, percent) above which a pod counts as stalled.",
    }),
    pressedPods: integer(3, 1, 1000, { about: "Number of stalled pods required for pressure." }),
    meanPressure: decimal(4, 0.1, 100, {
      about: "Mean memory PSI (some avg10, percent) of all shared and dedicated pods required for pressure.",
    }),
    pressureDuration: duration("15s", "1s", "1h", {
      about:
        "How long PSI pressure must last before reclaimed pods are candidates; all pods are after three times as long.",
    }),
    workloadCgroup: text(
      "",
      {
        pattern: /^(\/[^\0]*)?$/,
        expected: "a path relative to the cgroup mount, or empty",
        placeholder: "<path>",
      },
      { about: "Cgroup whose PSI is checked. Empty: the kubelet's cgroup for burstable pods." },
    ),
    detectionPeriod: duration("9s", "1s", "10m", {
      about: "Interval between checks of the node while it is under pressure.",
    }),
    cooldown: victimCooldown("35s", "1h"),
    victimMinimumShare: victimShare(),
    ranking: ranking(["qosLevel", "priority", "usage"]),
    gracePeriod: gracePeriod("Grace period of evicted pods.", "0s"),
    reclaimedGracePeriod: gracePeriod("Grace period while only reclaimed pods are candidates.", "10s"),
  }),
  numaMemory: section("numa-memory-pressure-eviction-plugin: memory pressure on a NUMA node.", {
    lowGuard: byteSize("256Mi", "0", "1Ti", { about: "Added to the kernel's low watermark." }),
    minGap: byteSize("1Gi", "0", "1Ti", { about: "Added to the kernel's min watermark." }),
    lowReserve: byteSize("4Gi", "0", "1Ti", {
      about: "Minimum of the low watermark while inactive page cache is below this.",
    }),
    largestReserveShare: decimal(0.1, 0.001, 1, {
      about: "Upper bound of lowGuard, minGap and lowReserve, as a share of the NUMA node's memory.",
    }),
    reclaimedCounts: integer(6, 1, 10_000, {
      about: "Number of samples below the low watermark after which reclaimed pods are candidates.",
    }),
    allCounts: integer(12, 1, 10_000, {
      about: "Number of samples below the low watermark after which all pods are candidates.",
    }),
    dangerCounts: integer(1, 0, 10_000, {
      about:
        "While free memory is below the min watermark, counting starts this many samples before allCounts.",
    }),
    victimMinimumShare: victimShare(),
    ranking: ranking(["qosLevel", "priority", "nodeUsage"]),
    gracePeriod: gracePeriod("Grace period of evicted pods.", "0s"),
    reclaimedGracePeriod: gracePeriod("Grace period while only reclaimed pods are candidates.", "10s"),
  }),
  rssOveruse: section("rss-overuse-eviction-plugin: pods whose RSS exceeds their memory requests.", {
    rateThreshold: decimal(1.05, 0.01, 1000, {
      about: "Ratio of a pod's RSS to its memory requests above which the pod is selected.",
    }),
    labels: textList(
      [],
      {
        pattern:
          /^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?=[A-Za-z0-9._-]{0,63}$/,
        expected: 'labels such as "example.com/watched=true"',
        placeholder: "<label=value,...>",
        maxItems: 32,
      },
      { about: "Only pods with all of these labels are checked." },
    ),
  }),
  rootfsPressure: section(
    "rootfs-pressure-eviction-plugin: pressure on the filesystem of containers' writable layers.",
    {
      minimumFree: decimal(10, 0, 99, {
        about: "Available space below which there is pressure, percent. 0: not checked.",
      }),
      minimumInodesFree: decimal(5, 0, 99, {
        about: "Free inodes below which there is pressure, percent. 0: not checked.",
      }),
      minimumCapacity: byteSize("10Gi", "0", "1Pi", { about: "Smaller filesystems are not checked." }),
      podMinimumUsed: byteSize("0", "0", "1Pi", {
        about: "Pods that use less in their writable layers are not evicted for space.",
      }),
      podMinimumInodes: integer(0, 0, 1_000_000_000, {
        about: "Pods that use fewer inodes are not evicted for inodes.",
      }),
      gracePeriod: gracePeriod("Grace period of evicted pods.", "0s"),
    },
  ),
  rootfsOveruse: section("rootfs-overuse-eviction-plugin: pods whose writable layers exceed a threshold.", {
    sharedThreshold: byteSize("0", "0", "1Pi", {
      about: "Use of writable layers above which a shared pod is selected. 0: never.",
    }),
    reclaimedThreshold: byteSize("0", "0", "1Pi", {
      about: "Use of writable layers above which a reclaimed pod is selected. 0: never.",
    }),
    sharedNamespaces: textList(
      [],
      {
        pattern: /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/,
        expected: "names of namespaces",
        placeholder: "<namespace,...>",
        maxItems: 128,
      },
      { about: "Namespaces whose shared pods are checked. Empty: all." },
    ),
    mostPods: integer(1, 1, 1_000, { about: "Maximum number of pods selected in one round." }),
    gracePeriod: gracePeriod("Grace period of evicted pods.", "0s"),
  }),
  pidOveruse: section("pid-overuse-eviction-plugin: pods with too many processes and threads.", {
    threshold: integer(0, 0, 4_194_304, {
      about: "Number of processes and threads above which a pod is selected. 0: never.",
    }),
    gracePeriod: gracePeriod("Grace period of evicted pods.", "0s"),
  }),
  systemCpu: section("system-cpu-pressure-eviction-plugin: CPU pressure on the node.", {
    loadUpper: decimal(2, 0, 1000, {
      about: "One-minute load average per CPU above which a sample counts as hard pressure. 0: not checked.",
    }),
    loadLower: decimal(1, 0, 1000, {
      about: "The same for soft pressure, which only sets the condition and evicts no pod.",
    }),
    usageUpper: decimal(0.8, 0, 1, {
      about: "Usage of all CPUs (0 to 1) above which a sample counts as hard pressure. 0: not checked.",
    }),
    usageLower: decimal(0.6, 0, 1, { about: "The same for soft pressure." }),
    looks: integer(10, 1, 1_000, {
      about: "Number of most recent samples considered; one is taken in each round.",
    }),
    metShare: decimal(0.8, 0.01, 1, { about: "Share of these samples that must exceed the threshold." }),
    cooldown: victimCooldown("5m", "24h"),
    gracePeriod: gracePeriod("Grace period of evicted pods.", "0s"),
  }),
  reclaimedResources: section(
    "reclaimed-resource-pressure-eviction-plugin: requests of reclaimed pods exceed what is allocatable to them.",
    {
      thresholds: resourceThresholds(
        [`${reclaimed}_millicpu=5`, `${reclaimed}_memory=5`],
        "Ratio of requests to allocatable above which there is hard pressure, by resource. Other resources are not checked.",
      ),
      softThresholds: resourceThresholds([], "The same for soft pressure."),
      tolerance: duration("0s", "0s", "1h", {
        about: "How long a threshold must be exceeded before there is pressure.",
      }),
      gracePeriod: gracePeriod("Grace period of evicted pods.", "1m"),
      skipZeroResources: textList(
        [],
        {
          pattern: /^[A-Za-z0-9./_-]{1,316}$/,
          expected: "names of resources",
          placeholder: "<resource,...>",
          maxItems: 32,
        },
        { about: "Resources for which an allocatable quantity of 0 means unknown." },
      ),
    },
  ),
});
