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

// Names of labels and annotations: a name, or a DNS name, a slash and a name.
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
export const evictionSection = section("Eviction of pods: who must go when the node hurts.", {
  enabled: boolean(true, {
    about: "Whether plugins are asked and pods evicted at all.",
    flag: "eviction",
  }),
  syncPeriod: duration("5s", "1s", "5m", {
    about: "From the start of one round to the start of the next.",
    applied: "live",
  }),
  callTimeout: duration("10s", "100ms", "1m", {
    about: "The deadline of one call to an eviction plugin; never longer than the period.",
    applied: "live",
  }),
  outOfTurnRounds: boolean(true, {
    about:
      "Whether a threshold that is crossed between two rounds starts a round at once, at most one a second. Off: nothing is sampled between rounds, and what plugins request is ignored.",
    applied: "live",
  }),
  strict: boolean(false, {
    about: "Whether a plugin counts only with a token that the API server knows and allows.",
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
    { about: "Plugins whose requests are recorded and not followed.", applied: "live" },
  ),
  burst: integer(3, -1, 1000, {
    about: "Pods whose eviction one round may start. -1: any number.",
    applied: "live",
  }),
  cooldown: duration("30s", "0s", "24h", {
    about:
      "After an evicted pod is deleted: how long until the same scope of the same plugin may take the next.",
    applied: "live",
  }),
  conditionTransitionPeriod: duration("5m", "0s", "24h", {
    about: "How long a condition, and its taint, stays after it was last met.",
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
        "The first part of the keys of taints that conditions lead to. Taints below an earlier prefix stay.",
    },
  ),
  softEvictionNotifyPath: text(
    "",
    { pattern: /^(\/[^\0]+)?$/, expected: "an absolute path, or nothing", placeholder: "<path>" },
    {
      about:
        "Pods that asked for notice of soft evictions get a file below this path besides the Event, as katalyst's host-path notifier writes it. Empty: off.",
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
        "Effects that plugins' conditions may have as taints. With NoExecute the taint manager evicts every pod without a toleration, whatever the budgets and limits.",
      applied: "live",
    },
  ),
  releaseMargin: duration("30s", "1s", "10m", {
    about: "How long beyond its grace period an evicted pod may take to be deleted.",
    applied: "live",
  }),
  longestRelease: duration("10m", "10s", "24h", {
    about: "How long a terminating pod blocks further evictions for the same signal.",
    applied: "live",
  }),
  failedEvictionPause: duration("1m", "1s", "1h", {
    about: "How long a pod is left alone after its eviction failed, as by a disruption budget.",
    applied: "live",
  }),
  forgetPluginAfter: duration("5m", "0s", "24h", {
    about: "How long grace timers and conditions of a plugin that disconnected are kept.",
    applied: "live",
  }),
  limits: section(
    "How many pods may be evicted within a window. What was sent counts, whatever came of it.",
    {
      window: duration("10m", "1s", "24h", {
        about: "Window over which evictions are counted against the limits.",
        applied: "live",
      }),
      perNode: integer(10, 0, 10_000, { about: "For the node. 0: any number.", applied: "live" }),
      perNamespace: integer(0, 0, 10_000, { about: "For one namespace. 0: any number.", applied: "live" }),
      perOwner: integer(2, 0, 10_000, {
        about: "For one controller, such as a ReplicaSet. 0: any number.",
        applied: "live",
      }),
    },
  ),
  skip: section("Pods that are left alone besides critical, static and mirror pods.", {
    labels: metadataKeys("label", "Pods with one of these labels, whatever its value."),
    annotations: metadataKeys("annotation", "Pods with one of these annotations, whatever its value."),
    daemonSets: boolean(true, {
      about: "Pods of DaemonSets, which their controller would put back at once.",
      applied: "live",
    }),
  }),
  grace: section("What a plugin may say about a victim's grace period.", {
    shortest: duration("10s", "0s", "1h", {
      about: "Lower bound for grace periods requested by plugins. The pod's own is not changed.",
      applied: "live",
    }),
    longest: duration("1h", "1s", "24h", {
      about: "Upper bound for grace periods requested by plugins.",
      applied: "live",
    }),
    allowZero: boolean(false, {
      about: "Whether a plugin's explicit 0 kills at once; else the pod's own grace period holds.",
      applied: "live",
    }),
  }),
  killer: oneOf("evictionApi", killerNames, {
    about:
      "How pods are evicted: by the eviction API, which heeds disruption budgets; by deletion; or by stopping their containers through CRI.",
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
      about: "Other ways for pods of a QoS level or, where no level has a rule, of a QoS class.",
      applied: "live",
    },
  ),
  inTreePlugins: textList(
    ["*"],
    {
      pattern: /^(\*|-?[A-Za-z0-9][A-Za-z0-9._-]{0,252})$/,
      expected: 'names: "*" for all that are on by default, "name" to add one, "-name" to leave one out',
      placeholder: "<name,...>",
      minItems: 0,
      maxItems: 64,
    },
    { about: "The in-tree eviction plugins to run." },
  ),
  ...evictionPluginSections,
  policies: section("Eviction policies in CEL, a plugin for each.", {
    files: textList(
      [],
      {
        pattern: absolutePath,
        expected: "absolute paths",
        placeholder: "<path,...>",
        minItems: 0,
        maxItems: 16,
      },
      { about: "Files of policies. They are read again when they change.", applied: "live" },
    ),
    enabled: textList(
      ["*"],
      {
        pattern: /^(\*|-?[a-z0-9][a-z0-9.-]{0,62})$/,
        expected: 'names: "*" for all, "name" to add one, "-name" to leave one out',
        placeholder: "<name,...>",
        minItems: 0,
        maxItems: 128,
      },
      { about: "The policies of these files to run.", applied: "live" },
    ),
    nodefsPath: text(
      "/var/lib/kubelet",
      { pattern: absolutePath, expected: "an absolute path", placeholder: "<path>" },
      { about: "What policies know as nodefs: where the kubelet keeps what is not images." },
    ),
    imagefsPath: text(
      "",
      { pattern: /^(\/[^\0]*)?$/, expected: "an absolute path, or nothing", placeholder: "<path>" },
      {
        about: "What policies know as imagefs: where the runtime keeps images. Empty: the runtime is asked.",
      },
    ),
    containerfsPath: text(
      "",
      { pattern: /^(\/[^\0]*)?$/, expected: "an absolute path, or nothing", placeholder: "<path>" },
      {
        about:
          "What policies know as containerfs: where the runtime keeps writable layers. Empty: as imagefsPath, or the runtime is asked.",
      },
    ),
  }),
  records: section("What is kept of rounds, for explain, rounds and replay.", {
    maxAge: duration("168h", "1h", "2160h", { about: "How long rounds are kept.", applied: "live" }),
    maxSize: byteSize("64Mi", "1Mi", "1Gi", {
      about: "What all of them together may take on the disk, about.",
      applied: "live",
    }),
  }),
});
