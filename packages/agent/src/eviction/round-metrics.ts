import { Counter, errorCodes, Gauge, Histogram, type Registry } from "@nodekeeper/core/lib";
import { evictionKinds } from "./decide/state.ts";

/** The steps of a round; values of the label `step`. */
export const roundSteps = ["ask", "prepare", "ask_top", "decide", "record", "act"] as const;
export type RoundStep = (typeof roundSteps)[number];
/** The calls to a plugin in a round; values of the label `method`. */
export const pluginMethods = ["GetEvictPods", "ThresholdMet", "GetTopEvictionPods"] as const;
export type PluginMethod = (typeof pluginMethods)[number];

/** Metrics of the pod watch, of calls to plugins and of rounds. */
export function createEvictionRoundMetrics(registry: Registry) {
  const registers = [registry];
  return {
    nodePods: new Gauge({
      name: "nodekeeper_eviction_node_pods",
      help: "Pods of this node at the API server.",
      registers,
    }),
    malformedPods: new Counter({
      name: "nodekeeper_eviction_malformed_pods_total",
      help: "Malformed pods received from the API server.",
      registers,
    }),
    oomKills: new Counter({
      name: "nodekeeper_eviction_oom_kills_total",
      help: "OOM-killed containers of this node.",
      registers,
    }),
    candidates: new Gauge({
      name: "nodekeeper_eviction_candidates",
      help: "Candidates for eviction in the last round.",
      registers,
    }),
    rounds: new Counter({
      name: "nodekeeper_eviction_rounds_total",
      help: "Rounds by result: done, skipped (pods not listed yet), failed.",
      labelNames: ["result"],
      registers,
    }),
    outOfTurnRounds: new Counter({
      name: "nodekeeper_eviction_rounds_out_of_turn_total",
      help: "Rounds started out of turn, by the plugin that requested them or whose threshold was crossed.",
      labelNames: ["plugin"],
      registers,
    }),
    roundDuration: new Histogram({
      name: "nodekeeper_eviction_round_duration_seconds",
      help: "Duration of a round, including the wait for plugins.",
      buckets: [0.01, 0.1, 1, 10],
      registers,
    }),
    stepSeconds: new Counter({
      name: "nodekeeper_eviction_round_step_seconds_total",
      help: "Time spent in each step of rounds, including the wait for plugins.",
      labelNames: ["step"],
      registers,
    }),
    victims: new Counter({
      name: "nodekeeper_eviction_victims_total",
      help: "Evictions started, by plugin and kind (soft, forced).",
      labelNames: ["plugin", "kind"],
      registers,
    }),
    dryRunVictims: new Counter({
      name: "nodekeeper_eviction_dry_run_victims_total",
      help: "Evictions not started because the plugin is in dry run, by plugin and kind (soft, forced); counted each round.",
      labelNames: ["plugin", "kind"],
      registers,
    }),
    refusals: new Counter({
      name: "nodekeeper_eviction_refusals_total",
      help: "Eviction requests of plugins that were refused, by reason; counted each round.",
      labelNames: ["reason"],
      registers,
    }),
    conditionRefusals: new Counter({
      name: "nodekeeper_eviction_condition_refusals_total",
      help: "Conditions of plugins, or effects of them, that were refused, by reason: invalidName, invalidEffect, effectNotAllowed; counted each round.",
      labelNames: ["reason"],
      registers,
    }),
    heldRounds: new Counter({
      name: "nodekeeper_eviction_held_rounds_total",
      help: "Rounds in which a confirmed threshold was on hold, by reason: pendingRelease, cooldown, nodeLimit, noEligiblePod.",
      labelNames: ["reason"],
      registers,
    }),
    unservedRounds: new Counter({
      name: "nodekeeper_eviction_unserved_rounds_total",
      help: "Rounds in which no pod may be selected for a confirmed hard threshold, by reason: failed, late, namedNone, namedIneligible, fallbackOff, scopeUnknown, noEligiblePod, nodeLimit.",
      labelNames: ["reason"],
      registers,
    }),
    callDuration: new Histogram({
      name: "nodekeeper_eviction_plugin_call_duration_seconds",
      help: "Duration of calls to eviction plugins, including failed calls.",
      labelNames: ["plugin"],
      buckets: [0.01, 0.1, 1, 10],
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
      help: "Registered eviction plugins, including in-tree ones.",
      registers,
    }),
    recordFailures: new Counter({
      name: "nodekeeper_eviction_record_failures_total",
      help: "Rounds whose state or record could not be written to the state database.",
      registers,
    }),
  };
}

export type EvictionRoundMetrics = ReturnType<typeof createEvictionRoundMetrics>;

/** Removes the series of one plugin, so that names of disconnected plugins do not accumulate. */
export function forgetPlugin(metrics: EvictionRoundMetrics, plugin: string): void {
  metrics.outOfTurnRounds.remove({ plugin });
  for (const kind of evictionKinds) {
    metrics.victims.remove({ plugin, kind });
    metrics.dryRunVictims.remove({ plugin, kind });
  }
  metrics.callDuration.remove({ plugin });
  for (const method of pluginMethods) {
    for (const code of Object.keys(errorCodes)) metrics.callFailures.remove({ plugin, method, code });
  }
}
