import { Counter, errorCodes, Gauge, Histogram, type Registry } from "@nodekeeper/core/lib";
import { evictionKinds } from "./decide/state.ts";

/** The steps of a round, as its metrics name them. */
export const roundSteps = ["ask", "prepare", "ask_top", "decide", "record", "act"] as const;
export type RoundStep = (typeof roundSteps)[number];
/** The calls to a plugin in a round, as its metrics name them. */
export const pluginMethods = ["GetEvictPods", "ThresholdMet", "GetTopEvictionPods"] as const;
export type PluginMethod = (typeof pluginMethods)[number];

/** The metrics of the watch of pods, of the calls to plugins and of rounds. */
export function createEvictionRoundMetrics(registry: Registry) {
  const registers = [registry];
  return {
    nodePods: new Gauge({
      name: "nodekeeper_eviction_node_pods",
      help: "Pods of this node that the API server knows.",
      registers,
    }),
    malformedPods: new Counter({
      name: "nodekeeper_eviction_malformed_pods_total",
      help: "Times a pod of the API server could not be read.",
      registers,
    }),
    oomKills: new Counter({
      name: "nodekeeper_eviction_oom_kills_total",
      help: "Containers of this node that were killed for lack of memory.",
      registers,
    }),
    candidates: new Gauge({
      name: "nodekeeper_eviction_candidates",
      help: "Pods that may be evicted, as of the last round.",
      registers,
    }),
    rounds: new Counter({
      name: "nodekeeper_eviction_rounds_total",
      help: "Rounds by result: done, skipped (pods not known yet), failed.",
      labelNames: ["result"],
      registers,
    }),
    outOfTurnRounds: new Counter({
      name: "nodekeeper_eviction_rounds_out_of_turn_total",
      help: "Rounds started before their time, by the plugin whose threshold was crossed or that requested one.",
      labelNames: ["plugin"],
      registers,
    }),
    roundDuration: new Histogram({
      name: "nodekeeper_eviction_round_duration_seconds",
      help: "How long each step of a round took, waiting for plugins included.",
      labelNames: ["step"],
      buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers,
    }),
    victims: new Counter({
      name: "nodekeeper_eviction_victims_total",
      help: "Pods whose eviction began, by the plugin it counts for and kind.",
      labelNames: ["plugin", "kind"],
      registers,
    }),
    dryRunVictims: new Counter({
      name: "nodekeeper_eviction_dry_run_victims_total",
      help: "Times a round would have begun an eviction but for dry run.",
      labelNames: ["plugin", "kind"],
      registers,
    }),
    refusals: new Counter({
      name: "nodekeeper_eviction_refusals_total",
      help: "Wishes of plugins that were not granted, by reason.",
      labelNames: ["reason"],
      registers,
    }),
    conditionRefusals: new Counter({
      name: "nodekeeper_eviction_condition_refusals_total",
      help: "Times a round refused a condition, or an effect of one, by reason: invalidName, invalidEffect, effectNotAllowed.",
      labelNames: ["reason"],
      registers,
    }),
    heldRounds: new Counter({
      name: "nodekeeper_eviction_held_rounds_total",
      help: "Rounds in which a threshold was met for its grace period and no pod was asked for, by reason: pendingRelease, cooldown, nodeLimit, noEligiblePod.",
      labelNames: ["reason"],
      registers,
    }),
    callDuration: new Histogram({
      name: "nodekeeper_eviction_plugin_call_duration_seconds",
      help: "Duration of calls to eviction plugins, failed ones included.",
      labelNames: ["plugin", "method"],
      buckets: [0.005, 0.025, 0.1, 0.5, 1, 5, 10],
      registers,
    }),
    callFailures: new Counter({
      name: "nodekeeper_eviction_plugin_call_failures_total",
      help: "Failed calls to eviction plugins.",
      labelNames: ["plugin", "method", "code"],
      registers,
    }),
    plugins: new Gauge({
      name: "nodekeeper_eviction_plugins",
      help: "Eviction plugins that are asked each round.",
      registers,
    }),
    recordFailures: new Counter({
      name: "nodekeeper_eviction_record_failures_total",
      help: "Rounds whose state or record could not be written.",
      registers,
    }),
  };
}

export type EvictionRoundMetrics = ReturnType<typeof createEvictionRoundMetrics>;

/** Removes the series of one plugin, so that names which come and go do not pile up. */
export function forgetPlugin(metrics: EvictionRoundMetrics, plugin: string): void {
  metrics.outOfTurnRounds.remove({ plugin });
  for (const kind of evictionKinds) {
    metrics.victims.remove({ plugin, kind });
    metrics.dryRunVictims.remove({ plugin, kind });
  }
  for (const method of pluginMethods) {
    metrics.callDuration.remove({ plugin, method });
    for (const code of Object.keys(errorCodes)) metrics.callFailures.remove({ plugin, method, code });
  }
}
