import { evictionKinds, type OutcomeResult } from "@nodekeeper/api/decide";
import { errorCodes, metricTable, type Registry } from "@nodekeeper/core/lib";

/** The steps of a round; values of the label `step`. */
export const roundSteps = ["ask", "prepare", "ask_top", "decide", "record", "act"] as const;
export type RoundStep = (typeof roundSteps)[number];
/** The calls to a plugin in a round; values of the label `method`. */
export const pluginMethods = ["GetEvictPods", "ThresholdMet", "GetTopEvictionPods"] as const;
export type PluginMethod = (typeof pluginMethods)[number];

// The outcomes that alerts and dashboards use. Each series costs memory on every node.
const countedFromZero: readonly OutcomeResult[] = ["terminated", "overdue", "failed"];

/** Metrics of eviction: of pods, calls to plugins, rounds, evictions from the decision to the end, and taints. */
export function createEvictionMetrics(registry: Registry) {
  const { counter, gauge, histogram } = metricTable(registry, "nodekeeper_eviction_");
  const metrics = {
    nodePods: gauge("node_pods", "Pods of this node at the API server."),
    malformedPods: counter("malformed_pods_total", "Malformed pods received from the API server."),
    oomKills: counter("oom_kills_total", "OOM-killed containers of this node."),
    candidates: gauge("candidates", "Candidates for eviction in the last round."),
    rounds: counter("rounds_total", "Rounds by result: done, skipped (pods not listed yet), failed.", [
      "result",
    ]),
    outOfTurnRounds: counter(
      "rounds_out_of_turn_total",
      "Rounds started out of turn, by the plugin that requested them or whose threshold was crossed.",
      ["plugin"],
    ),
    roundDuration: histogram(
      "round_duration_seconds",
      "Duration of a round, including the wait for plugins.",
      [0.01, 0.1, 1, 10],
    ),
    stepSeconds: counter(
      "round_step_seconds_total",
      "Time spent in each step of rounds, including the wait for plugins.",
      ["step"],
    ),
    victims: counter("victims_total", "Evictions started, by plugin and kind (soft, forced).", [
      "plugin",
      "kind",
    ]),
    dryRunVictims: counter(
      "dry_run_victims_total",
      "Evictions not started because the plugin is in dry run, by plugin and kind (soft, forced); counted each round.",
      ["plugin", "kind"],
    ),
    refusals: counter(
      "refusals_total",
      "Eviction requests of plugins that were refused, by reason; counted each round.",
      ["reason"],
    ),
    conditionRefusals: counter(
      "condition_refusals_total",
      "Conditions of plugins, or effects of them, that were refused, by reason: invalidName, invalidEffect, effectNotAllowed; counted each round.",
      ["reason"],
    ),
    heldRounds: counter(
      "held_rounds_total",
      "Rounds in which a confirmed threshold was on hold, by reason: pendingRelease, cooldown, nodeLimit, noEligiblePod.",
      ["reason"],
    ),
    unservedRounds: counter(
      "unserved_rounds_total",
      "Rounds in which no pod may be selected for a confirmed hard threshold, by reason: failed, late, namedNone, namedIneligible, fallbackOff, scopeUnknown, noEligiblePod, nodeLimit.",
      ["reason"],
    ),
    callDuration: histogram(
      "plugin_call_duration_seconds",
      "Duration of calls to eviction plugins, including failed calls.",
      [0.01, 0.1, 1, 10],
      ["plugin"],
    ),
    callFailures: counter("plugin_call_failures_total", "Failed calls to eviction plugins.", [
      "plugin",
      "method",
      "code",
    ]),
    plugins: gauge("plugins", "Registered eviction plugins, including in-tree ones."),
    recordFailures: counter(
      "record_failures_total",
      "Failed writes of eviction state or records to the state database.",
    ),
    kills: counter(
      "kills_total",
      "Eviction attempts by killer and result: accepted, terminated (the pod had ended already), budget (refused by a PodDisruptionBudget), forbidden, failed, retry.",
      ["killer", "result"],
    ),
    ended: counter(
      "ended_total",
      "Evictions by outcome: terminated (accepted, then the pod was deleted or its containers were stopped), superseded (the pod ended before a request was accepted), unknown (the pod ended, acceptance not recorded), overdue (still terminating after its deadline), failed, withdrawn.",
      ["outcome"],
    ),
    underWay: gauge(
      "under_way",
      "Evictions in progress by phase: waiting (not accepted yet), sent (accepted, containers being stopped, or pod terminating).",
      ["phase"],
    ),
    duration: histogram(
      "duration_seconds",
      "Time from the decision until the pod was deleted or its containers were stopped.",
      [1, 10, 30, 120, 600],
    ),
    taintWrites: counter(
      "taint_writes_total",
      "Writes of the Node's taints by result: written, conflict (read again and retried), failed.",
      ["result"],
    ),
    notices: counter(
      "host_path_notices_total",
      "Soft eviction notices written to hostPath files by result: written, failed.",
      ["result"],
    ),
  };
  // Initialized to 0, because Prometheus' increase() does not count the first sample of a new series.
  for (const outcome of countedFromZero) metrics.ended.inc({ outcome }, 0);
  return metrics;
}

export type EvictionMetrics = ReturnType<typeof createEvictionMetrics>;

/** Removes the series of one plugin, so that the names of disconnected plugins do not accumulate. */
export function forgetPlugin(metrics: EvictionMetrics, plugin: string): void {
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
