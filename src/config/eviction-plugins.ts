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
        live("How long it has to last until reclaimed pods go; three times as long until anybody does."),
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
      cooldown: duration("35s", "0s", "1h", live("After a pod was named, none is for so long.")),
      victimMinimumShare: victimShare(),
      ranking: ranking(["qosLevel", "priority", "usage"]),
      gracePeriod: gracePeriod("Of anybody.", "0s"),
      reclaimedGracePeriod: gracePeriod("While only reclaimed pods are at risk.", "1s"),
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
        live("In more looks than this below the low watermark, reclaimed pods go."),
      ),
      allCounts: integer(12, 1, 10_000, live("From this look on, anybody goes.")),
      dangerCounts: integer(1, 0, 10_000, live("In danger, counting goes on from so many before.")),
      victimMinimumShare: victimShare(),
      ranking: ranking(["qosLevel", "priority", "nodeUsage"]),
      gracePeriod: gracePeriod("Of anybody.", "0s"),
      reclaimedGracePeriod: gracePeriod("While only reclaimed pods are at risk.", "1s"),
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
