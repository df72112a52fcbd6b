import { evictionPluginSections } from "./eviction-plugins.ts";
import { boolean, byteSize, duration, integer, oneOf, text, textList } from "./leaf.ts";
import { absolutePath, nodeNamePattern } from "./patterns.ts";
import { section } from "./section.ts";

const killerNames = ["evictionApi", "deletion", "containerStop"] as const;
const evictionClasses = [
  "reclaimed_cores",
  "shared_cores",
  "dedicated_cores",
  "BestEffort",
  "Burstable",
  "Guaranteed",
] as const;

// Qualified names, as of labels and annotations: an optional DNS subdomain and a slash, then a name.
const qualifiedName =
  /^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;

function metadataKeys(what: string, about: string) {
  return textList(
    [],
    {
      pattern: qualifiedName,
      expected: `names of ${what}s`,
      placeholder: `<${what},...>`,
      minItems: 0,
      maxItems: 64,
    },
    { about, applied: "live" },
  );
}

/** Settings of eviction. */
export const evictionSection = section("Eviction of pods when the node is under pressure.", {
  enabled: boolean(true, {
    about: "Whether eviction plugins are called and pods evicted.",
    flag: "eviction",
  }),
  syncPeriod: duration("5s", "1s", "5m", {
    about: "Interval between the starts of two eviction rounds.",
    applied: "live",
  }),
  callTimeout: duration("10s", "100ms", "1m", {
    about: "Timeout of one call to an eviction plugin; at most syncPeriod.",
    applied: "live",
  }),
  outOfTurnRounds: boolean(true, {
    about:
      "Whether a threshold crossed between two rounds starts a round immediately, at most one per second. If false, nothing is sampled between rounds, and plugins' requests for a round are ignored.",
    applied: "live",
  }),
  strict: boolean(false, {
    about: "Whether eviction plugins must present a token that the API server authenticates and authorizes.",
  }),
  dryRunPlugins: textList(
    [],
    {
      pattern: /^(\*|[A-Za-z0-9][A-Za-z0-9._-]{0,252})$/,
      expected: 'names of plugins, or "*" for all',
      placeholder: "<name,...>",
      minItems: 0,
      maxItems: 128,
    },
    {
      about: "Plugins in dry-run mode: their requests are recorded, and no pod is evicted for them.",
      applied: "live",
    },
  ),
  burst: integer(3, -1, 1000, {
    about: "Maximum number of evictions that one round starts. -1: no limit.",
    applied: "live",
  }),
  cooldown: duration("30s", "0s", "24h", {
    about:
      "How long after an evicted pod is deleted no further pod is evicted for the same plugin and scope.",
    applied: "live",
  }),
  conditionTransitionPeriod: duration("5m", "0s", "24h", {
    about: "How long a condition and its taint remain after the threshold was last met.",
    applied: "live",
  }),
  taintPrefix: text(
    "nodekeeper.dev",
    {
      pattern: nodeNamePattern,
      expected: 'a DNS name, such as "nodekeeper.dev"',
      placeholder: "<prefix>",
      maxLength: 253,
    },
    {
      about:
        "Prefix of the keys of taints that conditions add. Existing taints with an earlier prefix are kept.",
    },
  ),
  softEvictionNotifyPath: text(
    "",
    { pattern: /^(\/[^\0]+)?$/, expected: "an absolute path, or empty", placeholder: "<path>" },
    {
      about:
        "Directory in which pods annotated for soft eviction notices get a file, besides the Event, in the format of katalyst's host-path notifier. Empty: no files.",
    },
  ),
  taintEffects: textList(
    ["NoSchedule", "PreferNoSchedule"],
    {
      pattern: /^(NoSchedule|PreferNoSchedule|NoExecute)$/,
      expected: "some of NoSchedule, PreferNoSchedule, NoExecute",
      placeholder: "<effect,...>",
      minItems: 0,
      maxItems: 3,
    },
    {
      about:
        "Taint effects that conditions of plugins may have. With NoExecute, the taint manager evicts every pod without a toleration, regardless of disruption budgets and of the limits below.",
      applied: "live",
    },
  ),
  releaseMargin: duration("30s", "1s", "10m", {
    about: "How long after the end of its grace period an evicted pod may take to be deleted.",
    applied: "live",
  }),
  longestRelease: duration("10m", "10s", "24h", {
    about: "How long a terminating pod blocks further evictions for the same signal.",
    applied: "live",
  }),
  failedEvictionPause: duration("1m", "1s", "1h", {
    about:
      "How long a pod is not evicted again after its eviction failed, for example because of a disruption budget.",
    applied: "live",
  }),
  forgetPluginAfter: duration("5m", "0s", "24h", {
    about: "How long grace timers and conditions of a disconnected plugin are kept.",
    applied: "live",
  }),
  limits: section(
    "Maximum number of evictions within a window. Every eviction sent counts, also if it failed.",
    {
      window: duration("10m", "1s", "24h", {
        about: "Window over which evictions are counted against the limits.",
        applied: "live",
      }),
      perNode: integer(10, 0, 10_000, { about: "Limit for the node. 0: no limit.", applied: "live" }),
      perNamespace: integer(0, 0, 10_000, {
        about: "Limit for each namespace. 0: no limit.",
        applied: "live",
      }),
      perOwner: integer(2, 0, 10_000, {
        about: "Limit for each controller, such as a ReplicaSet. 0: no limit.",
        applied: "live",
      }),
    },
  ),
  skip: section("Pods that are never evicted, in addition to critical, static and mirror pods.", {
    labels: metadataKeys("label", "Pods with any of these labels, regardless of the value."),
    annotations: metadataKeys("annotation", "Pods with any of these annotations, regardless of the value."),
    daemonSets: boolean(true, {
      about:
        "Whether pods of DaemonSets are never evicted; their controller would recreate them on this node.",
      applied: "live",
    }),
  }),
  grace: section("Bounds for the grace periods that plugins request.", {
    shortest: duration("10s", "0s", "1h", {
      about:
        "Lower bound for grace periods requested by plugins. The grace period of the pod spec is not changed.",
      applied: "live",
    }),
    longest: duration("1h", "1s", "24h", {
      about: "Upper bound for grace periods requested by plugins.",
      applied: "live",
    }),
    allowZero: boolean(false, {
      about:
        "Whether a plugin may request a grace period of 0, which kills immediately. If false, the grace period of the pod spec is used instead.",
      applied: "live",
    }),
  }),
  killer: oneOf("evictionApi", killerNames, {
    about:
      "How pods are evicted: through the eviction API, which respects disruption budgets; by deletion; or by stopping their containers through CRI.",
    applied: "live",
  }),
  killerRules: textList(
    [],
    {
      pattern: new RegExp(`^(${evictionClasses.join("|")})=(${killerNames.join("|")})$`),
      expected: 'rules such as "reclaimed_cores=deletion" or "BestEffort=containerStop"',
      placeholder: "<class=killer,...>",
      minItems: 0,
      maxItems: evictionClasses.length,
    },
    {
      about:
        "Overrides of killer for a katalyst QoS level or a QoS class. A rule for the level takes precedence.",
      applied: "live",
    },
  ),
  inTreePlugins: textList(
    ["*"],
    {
      pattern: /^(\*|-?[A-Za-z0-9][A-Za-z0-9._-]{0,252})$/,
      expected: 'names: "*" for all enabled by default, "name" to add one, "-name" to exclude one',
      placeholder: "<name,...>",
      minItems: 0,
      maxItems: 64,
    },
    { about: "The in-tree eviction plugins to run." },
  ),
  ...evictionPluginSections,
  policies: section("Eviction policies in CEL. Each policy runs as an eviction plugin.", {
    files: textList(
      [],
      {
        pattern: absolutePath,
        expected: "absolute paths",
        placeholder: "<path,...>",
        minItems: 0,
        maxItems: 16,
      },
      { about: "Policy files. They are reloaded when they change.", applied: "live" },
    ),
    enabled: textList(
      ["*"],
      {
        pattern: /^(\*|-?[a-z0-9][a-z0-9.-]{0,62})$/,
        expected: 'names: "*" for all, "name" to add one, "-name" to exclude one',
        placeholder: "<name,...>",
        minItems: 0,
        maxItems: 128,
      },
      { about: "Policies of these files to run.", applied: "live" },
    ),
    nodefsPath: text(
      "/var/lib/kubelet",
      { pattern: absolutePath, expected: "an absolute path", placeholder: "<path>" },
      { about: "A path on nodefs, the kubelet's main filesystem." },
    ),
    imagefsPath: text(
      "",
      { pattern: /^(\/[^\0]*)?$/, expected: "an absolute path, or empty", placeholder: "<path>" },
      {
        about:
          "A path on imagefs, where the container runtime stores images. Empty: as reported by the runtime.",
      },
    ),
    containerfsPath: text(
      "",
      { pattern: /^(\/[^\0]*)?$/, expected: "an absolute path, or empty", placeholder: "<path>" },
      {
        about:
          "A path on containerfs, where the container runtime stores writable layers. Empty: imagefsPath if set, otherwise as reported by the runtime.",
      },
    ),
  }),
  records: section("Retention of round records, which `explain`, `rounds` and `replay` show.", {
    maxAge: duration("168h", "1h", "2160h", { about: "How long round records are kept.", applied: "live" }),
    maxSize: byteSize("64Mi", "1Mi", "1Gi", {
      about: "Approximate limit for the disk space of all round records.",
      applied: "live",
    }),
  }),
});
