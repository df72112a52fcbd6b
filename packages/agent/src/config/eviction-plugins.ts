import { byteSize, decimal, duration, integer, text, textList } from "./leaf.ts";

// Tuning of the in-tree eviction plugins: in the file alone, for --help has enough to tell without it.
const live = (about: string) => ({ about, applied: "live", flag: false }) as const;

const rankingMetrics = ["qosLevel", "priority", "usage", "rss", "workingSet", "nodeUsage"];

function ranking(initial: readonly string[]) {
  return textList(
    [...initial],
    {
      pattern: new RegExp(`^(${rankingMetrics.join("|")})$`),
      expected: `some of ${rankingMetrics.join(", ")}`,
      placeholder: "<metric,...>",
      minItems: 1,
      maxItems: rankingMetrics.length,
    },
    live("What pods are ranked by, the first first."),
  );
}

const victimShare = () =>
  decimal(0.001, 0, 1, live("A victim uses at least this share of the memory in question."));
const gracePeriod = (about: string, initial: string) =>
  duration(initial, "0s", "1h", live(`${about} 0s: the pod's own.`));

// "resource=5": a number over 0, never a percentage.
function resourceThresholds(initial: readonly string[], about: string) {
  return textList(
    [...initial],
    {
      pattern:
        /^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?=(?!0+(\.0+)?$)\d{1,6}(\.\d{1,6})?$/,
      expected: 'thresholds such as "example.com/cpus=5"',
      placeholder: "<resource=number,...>",
      minItems: 0,
      maxItems: 32,
    },
    live(about),
  );
}

const reclaimed = "resource.katalyst.kubewharf.io/reclaimed";

/** Settings of the in-tree eviction plugins, a section each. */
export const evictionPluginSections = {
  systemMemory: {
    about: "system-memory-pressure-eviction-plugin: the machine as a whole is short of memory.",
    settings: {
      freeMinimum: byteSize(
        "0",
        "0",
        "16Ti",
        live("Free memory below this is pressure, whatever the kernel's watermarks."),
      ),
      workloadPressure: decimal(
        15,
        0.1,
        100,
        live("Stalls of the workload's cgroup from which on pods are looked at, percent (some avg10)."),
      ),
      podPressure: decimal(1, 0, 100, live("A pod above it counts as pressed, percent.")),
      pressedPods: integer(3, 1, 1000, live("So many pressed pods it takes.")),
      meanPressure: decimal(
        4,
        0.1,
        100,
        live("Mean over all shared and dedicated pods from which on it is pressure, percent."),
      ),
      pressureDuration: duration(
        "15s",
        "1s",
        "1h",
        live(
          "How long it has to last until reclaimed pods are candidates; three times as long until all pods are.",
        ),
      ),
      workloadCgroup: text(
        "",
        {
          pattern: /^(\/[^\0]*)?$/,
          expected: "a path below the cgroup mount, or nothing",
          placeholder: "<path>",
        },
        live("The workload's cgroup. Empty: the kubelet's group of burstable pods."),
      ),
      detectionPeriod: duration("9s", "1s", "10m", live("How often the machine is looked at.")),
      cooldown: duration(
        "35s",
        "0s",
        "1h",
        live("After a named pod was evicted, none is named for so long."),
      ),
      victimMinimumShare: victimShare(),
      ranking: ranking(["qosLevel", "priority", "usage"]),
      gracePeriod: gracePeriod("Of any pod.", "0s"),
      reclaimedGracePeriod: gracePeriod("While only reclaimed pods are at risk.", "10s"),
    },
  },
  numaMemory: {
    about: "numa-memory-pressure-eviction-plugin: a NUMA node is short of memory.",
    settings: {
      lowGuard: byteSize("256Mi", "0", "1Ti", live("Added to the kernel's low watermark.")),
      minGap: byteSize("1Gi", "0", "1Ti", live("Added to the kernel's min watermark.")),
      lowReserve: byteSize(
        "4Gi",
        "0",
        "1Ti",
        live("Less idle page cache than this is short, and the low watermark is at least this then."),
      ),
      largestReserveShare: decimal(
        0.1,
        0.001,
        1,
        live("None of the three is more than this share of the node."),
      ),
      reclaimedCounts: integer(
        6,
        1,
        10_000,
        live("Number of samples below the low watermark after which reclaimed pods are candidates."),
      ),
      allCounts: integer(
        12,
        1,
        10_000,
        live("Number of samples below the low watermark after which all pods are candidates."),
      ),
      dangerCounts: integer(
        1,
        0,
        10_000,
        live("In danger, counting continues from this many before `allCounts`."),
      ),
      victimMinimumShare: victimShare(),
      ranking: ranking(["qosLevel", "priority", "nodeUsage"]),
      gracePeriod: gracePeriod("Of any pod.", "0s"),
      reclaimedGracePeriod: gracePeriod("While only reclaimed pods are at risk.", "10s"),
    },
  },
  rssOveruse: {
    about: "rss-overuse-eviction-plugin: a pod holds more anonymous memory than it asked for.",
    settings: {
      rateThreshold: decimal(
        1.05,
        0.01,
        1000,
        live("A pod whose RSS is above so many times its memory requests is named."),
      ),
      labels: textList(
        [],
        {
          pattern:
            /^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?=[A-Za-z0-9._-]{0,63}$/,
          expected: 'labels such as "example.com/watched=true"',
          placeholder: "<label=value,...>",
          minItems: 0,
          maxItems: 32,
        },
        live("Only pods with all of these labels are looked at."),
      ),
    },
  },
  rootfsPressure: {
    about: "rootfs-pressure-eviction-plugin: the file system of writable layers is short.",
    settings: {
      minimumFree: decimal(10, 0, 99, live("Less space available is pressure, percent. 0: not looked at.")),
      minimumInodesFree: decimal(5, 0, 99, live("Fewer inodes free is pressure, percent. 0: not looked at.")),
      minimumCapacity: byteSize("10Gi", "0", "1Pi", live("A smaller file system is left alone.")),
      podMinimumUsed: byteSize(
        "0",
        "0",
        "1Pi",
        live("A pod with less in its writable layers is not evicted for space."),
      ),
      podMinimumInodes: integer(
        0,
        0,
        1_000_000_000,
        live("A pod with fewer inodes is not evicted for inodes."),
      ),
      gracePeriod: gracePeriod("Of the victims.", "0s"),
    },
  },
  rootfsOveruse: {
    about: "rootfs-overuse-eviction-plugin: a pod has more in its writable layers than it may.",
    settings: {
      sharedThreshold: byteSize("0", "0", "1Pi", live("Shared pods with more are named. 0: none.")),
      reclaimedThreshold: byteSize("0", "0", "1Pi", live("Reclaimed pods with more are named. 0: none.")),
      sharedNamespaces: textList(
        [],
        {
          pattern: /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/,
          expected: "names of namespaces",
          placeholder: "<namespace,...>",
          minItems: 0,
          maxItems: 128,
        },
        live("Only shared pods of these namespaces are looked at. Empty: of all."),
      ),
      mostPods: integer(1, 1, 1_000, live("Pods named in one round.")),
      gracePeriod: gracePeriod("Of the victims.", "0s"),
    },
  },
  pidOveruse: {
    about: "pid-overuse-eviction-plugin: a pod has more processes and threads than it may.",
    settings: {
      threshold: integer(0, 0, 4_194_304, live("Pods with more processes and threads are named. 0: none.")),
      gracePeriod: gracePeriod("Of the victims.", "0s"),
    },
  },
  systemCpu: {
    about: "system-cpu-pressure-eviction-plugin: the CPUs of the machine are short.",
    settings: {
      loadUpper: decimal(
        2,
        0,
        1000,
        live("Load average of a minute for each CPU above which a look counts as hard. 0: not looked at."),
      ),
      loadLower: decimal(
        1,
        0,
        1000,
        live("The same for soft pressure, which sets the condition and evicts no pod."),
      ),
      usageUpper: decimal(
        0.8,
        0,
        1,
        live("Use of all CPUs above which a look counts as hard. 0: not looked at."),
      ),
      usageLower: decimal(0.6, 0, 1, live("The same for soft pressure.")),
      looks: integer(10, 1, 1_000, live("Looks that are kept, one each round.")),
      metShare: decimal(0.8, 0.01, 1, live("The share of these looks that must be above.")),
      cooldown: duration(
        "5m",
        "0s",
        "24h",
        live("After a named pod was evicted, none is named for so long."),
      ),
      gracePeriod: gracePeriod("Of the victims.", "0s"),
    },
  },
  reclaimedResources: {
    about: "reclaimed-resource-pressure-eviction-plugin: reclaimed pods ask for more than there is to lend.",
    settings: {
      thresholds: resourceThresholds(
        [`${reclaimed}_millicpu=5`, `${reclaimed}_memory=5`],
        "Requests above so many times what is allocatable are hard pressure. Other resources are not looked at.",
      ),
      softThresholds: resourceThresholds([], "The same for soft pressure."),
      tolerance: duration("0s", "0s", "1h", live("Pressure counts once it has lasted so long.")),
      gracePeriod: gracePeriod("Of the victims.", "1m"),
      skipZeroResources: textList(
        [],
        {
          pattern: /^[A-Za-z0-9./_-]{1,316}$/,
          expected: "names of resources",
          placeholder: "<resource,...>",
          minItems: 0,
          maxItems: 32,
        },
        live("Resources for which an allocatable of 0 says that nothing is known."),
      ),
    },
  },
} as const;
