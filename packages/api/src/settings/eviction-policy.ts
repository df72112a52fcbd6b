import { boolean, duration, integer, nameSelection, text, textList } from "./leaf.ts";
import { LONGEST_NAME, nodeNamePattern, qualifiedName } from "./patterns.ts";
import { live, section } from "./section.ts";

function metadataKeys(what: string, about: string) {
  return textList(
    [],
    {
      pattern: qualifiedName,
      expected: `names of ${what}s`,
      placeholder: `<${what},...>`,
      maxItems: 64,
    },
    { about },
  );
}

function pluginNames(initial: string[], about: { about: string }) {
  const expected = 'names of plugins, "*" for all, or "-name" for an exception';
  return nameSelection(initial, { expected, maxItems: 128 }, about);
}

/**
 * Settings of section `eviction` that form the eviction policy, which `replay` compares. In a separate file for the
 * page, which bundles them to validate an edited policy in the same way as the agent.
 */
export const evictionPolicySettings = live({
  dryRunPlugins: pluginNames(["*"], {
    about:
      'Plugins in dry-run mode: their requests are recorded, and no pod is evicted for them. The first "name" or "-name" of a plugin takes precedence over "*". With "*" and no exception, nothing about eviction is written to the API server.',
  }),
  fallbackPlugins: pluginNames(["*"], {
    about:
      'Plugins for which Nodekeeper selects a pod by its own ranking when, for a hard threshold, they name only pods that can\'t be evicted, in three rounds in a row, and it is known which pods belong to the scope. The first "name" or "-name" of a plugin takes precedence over "*". A failed or late call never leads to it.',
  }),
  burst: integer(3, -1, 1000, { about: "Maximum number of evictions that one round starts. -1: no limit." }),
  ranking: textList(
    ["qosLevel", "priority", "scope"],
    {
      pattern: /^(qosLevel|qosClass|priority|scope)$/,
      expected: "some of qosLevel, qosClass, priority, scope",
      placeholder: "<key,...>",
      minItems: 1,
      maxItems: 4,
    },
    {
      about:
        "Keys by which pods are ranked for eviction, the most significant first; pods that are equal in all of them are ranked by name. The default is the order of katalyst.",
    },
  ),
  cooldown: duration("30s", "0s", "24h", {
    about:
      "How long after the end of an eviction no further pod is evicted for the same scope of the plugin's threshold or, after a soft request by name (GetEvictPods), for the plugin's next one. Requests that force a pod by name do not wait.",
  }),
  conditionTransitionPeriod: duration("5m", "0s", "24h", {
    about: "How long a condition and its taint remain after the threshold was last met.",
  }),
  taintPrefix: text(
    "nodekeeper.dev",
    {
      pattern: nodeNamePattern,
      expected: 'a DNS name, such as "nodekeeper.dev"',
      placeholder: "<prefix>",
      maxLength: LONGEST_NAME,
    },
    {
      about:
        "Prefix of the keys of taints that conditions add. Taints with an earlier prefix are removed if the agent added them.",
      applied: "restart",
    },
  ),
  taintEffects: textList(
    ["NoSchedule", "PreferNoSchedule"],
    {
      pattern: /^(NoSchedule|PreferNoSchedule|NoExecute)$/,
      expected: "some of NoSchedule, PreferNoSchedule, NoExecute",
      placeholder: "<effect,...>",
      maxItems: 3,
    },
    {
      about:
        "Taint effects that conditions of plugins may have. With NoExecute, the taint manager evicts every pod without a toleration, regardless of disruption budgets and of the limits below.",
    },
  ),
  releaseMargin: duration("30s", "1s", "10m", {
    about: "How long after the end of its grace period an evicted pod may take to be deleted.",
  }),
  longestRelease: duration("10m", "10s", "24h", {
    about: "How long a terminating pod blocks further evictions for the same signal.",
  }),
  failedEvictionPause: duration("1m", "1s", "1h", {
    about:
      "How long a pod is not evicted again after its eviction failed, for example because of a disruption budget.",
  }),
  forgetPluginAfter: duration("5m", "0s", "24h", {
    about: "How long the grace timers of a disconnected plugin are kept.",
  }),
  limits: section(
    "Maximum number of evictions within a window. Every eviction that was or may have been accepted counts, even if it failed.",
    {
      window: duration("10m", "1s", "24h", {
        about: "Window over which evictions are counted against the limits.",
      }),
      perNode: integer(10, 0, 10_000, { about: "Limit for the node. 0: no limit." }),
      perNamespace: integer(0, 0, 10_000, { about: "Limit for each namespace. 0: no limit." }),
      perOwner: integer(2, 0, 10_000, {
        about: "Limit for each controller, such as a ReplicaSet. 0: no limit.",
      }),
    },
  ),
  skip: section("Pods that are never evicted, in addition to critical, static and mirror pods.", {
    labels: metadataKeys("label", "Pods with any of these labels, regardless of the value."),
    annotations: metadataKeys("annotation", "Pods with any of these annotations, regardless of the value."),
    daemonSets: boolean(true, {
      about:
        "Whether pods of DaemonSets are never evicted; their controller would recreate them on this node.",
    }),
  }),
  grace: section("Bounds for the grace periods that plugins request.", {
    shortest: duration("10s", "0s", "1h", {
      about:
        "Lower bound for grace periods requested by plugins. The grace period of the pod spec is not changed.",
    }),
    longest: duration("1h", "1s", "24h", { about: "Upper bound for grace periods requested by plugins." }),
    allowZero: boolean(false, {
      about:
        "Whether a plugin may request a grace period of 0, which kills immediately. If false, the grace period of the pod spec is used instead.",
    }),
  }),
});
