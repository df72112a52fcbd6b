import * as s from "../schemas/index.ts";
import { evictionPod, outcome, podReference, state } from "../schemas/index.ts";
import { decision, late, metType, ranking, thresholdValues } from "./eviction-decision.ts";

// A round and its input in records: docs/eviction-records.md.

export const conditionAnswer = s.object(
  {
    target: s.oneOf(["node", "customNodeResource"]),
    name: s.text(),
    effects: s.list(
      s.text('As in the plugin\'s answer, not validated: "NoSchedule", "reclaimed_cores/NoSchedule".'),
    ),
    met: s.flag(),
  },
  "A condition that the plugin reports, to be set as taints of the Node or its CustomNodeResource.",
);

const grace = s.nullable(
  s.number("Seconds, as in the plugin's answer; null for the pod's own grace period."),
);

export const evictPodsAnswer = s.object({
  pods: s.list(s.object({ pod: podReference, reason: s.text(), force: s.flag(), gracePeriodSeconds: grace })),
  condition: s.nullable(conditionAnswer),
});

export const thresholdAnswer = s.object({
  ...thresholdValues,
  metType,
  scope: s.text(),
  gracePeriodSeconds: s.number("As in the plugin's answer: not validated, may be negative."),
  condition: s.nullable(conditionAnswer),
  candidateUids: s.list(s.text(), "The only pods to offer in GetTopEvictionPods; empty for all candidates."),
});

export const topAnswer = s.object({ pods: s.list(podReference), gracePeriodSeconds: grace });

/** The result of a call: the answer, or the error message. */
const answered = <T>(answer: s.Schema<T>) =>
  s.either(s.object({ answer }), s.object({ failure: s.text(), late }));

export const pluginAnswers = s.object({
  plugin: s.text(),
  evictPods: answered(evictPodsAnswer),
  threshold: answered(thresholdAnswer),
});

export const topAnswers = s.object({ plugin: s.text(), top: answered(topAnswer) });

export const policy = s.named(
  "EvictionPolicy",
  s.object({
    burst: s.number("Most evictions started in a round; negative: no limit."),
    ranking,
    dryRunPlugins: s.list(
      s.text(),
      'Plugins whose requests are only recorded; "*" for all, "-name" for an exception.',
    ),
    fallbackPlugins: s.list(
      s.text(),
      "Plugins for which the ranking may select a pod while they name only pods that can't be evicted; as dryRunPlugins.",
    ),
    conditionTransitionPeriodMs: s.number("How long a condition stays after it was last reported as met."),
    taintPrefix: s.text('Of the keys of taints: "nodekeeper.dev".'),
    taintEffects: s.list(s.text(), "Those that conditions may have. Others are refused."),
    cooldownMs: s.number("How long no other pod is selected for a scope after its last victim was deleted."),
    releaseMarginMs: s.number("How long the deletion of an evicted pod may take beyond its grace period."),
    longestReleaseMs: s.number(
      "How long a terminating pod blocks further evictions for the same threshold at most, regardless of its grace period.",
    ),
    failedEvictionPauseMs: s.number("How long an eviction is not retried after a failure."),
    forgetPluginAfterMs: s.number("How long the grace timers of a plugin are kept after it disconnected."),
    limits: s.object(
      {
        windowMs: s.number(),
        perNode: s.nullable(s.number()),
        perNamespace: s.nullable(s.number()),
        perOwner: s.nullable(s.number()),
      },
      "Limits of evictions that are accepted within `windowMs`; null for no limit.",
    ),
    skip: s.object(
      {
        labelKeys: s.list(s.text(), "With any value."),
        annotationKeys: s.list(s.text(), "With any value."),
        evictDaemonSetPods: s.flag(
          "Whether pods of DaemonSets may be evicted. Their controller recreates them on the same node.",
        ),
      },
      "Pods that are never candidates, in addition to critical, static, mirror and terminating ones.",
    ),
    grace: s.object(
      {
        shortestSeconds: s.number("Lower bound, at most `longestSeconds`."),
        longestSeconds: s.number("Upper bound."),
        allowZero: s.flag(
          "Whether 0 is allowed, which kills the pod immediately. If not, 0 falls back to the pod's own grace period.",
        ),
      },
      "Bounds of grace periods requested by plugins.",
    ),
  }),
);

export const roundRecord = s.named(
  "RoundRecord",
  s.object(
    {
      id: s.integer("Increases from round to round."),
      input: s.object({
        now: s.time(),
        nodeName: s.text(),
        pods: s.list(evictionPod),
        plugins: s.list(pluginAnswers, "One entry for each registered plugin."),
        outcomes: s.list(outcome, "Evictions that ended since the previous round."),
        policy,
        state,
        tops: s.list(topAnswers),
      }),
      decision,
    },
    "A round with its whole input and its decision.",
  ),
);
