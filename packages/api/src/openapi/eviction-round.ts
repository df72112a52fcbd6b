import { decision, late, metType, ranking, thresholdValues } from "./eviction-decision.ts";
import { evictionPod, podReference } from "./eviction-pod.ts";
import { outcome, state } from "./eviction-state.ts";
import {
  either,
  flag,
  integer,
  list,
  named,
  nullable,
  number,
  object,
  oneOf,
  type Schema,
  text,
  time,
} from "./schema.ts";

// A round and its input in records: docs/eviction-records.md.

export const conditionAnswer = object(
  {
    target: oneOf(["node", "customNodeResource"]),
    name: text(),
    effects: list(
      text('As in the plugin\'s answer, not validated: "NoSchedule", "reclaimed_cores/NoSchedule".'),
    ),
    met: flag(),
  },
  "A condition that the plugin reports, to be set as taints of the Node or its CustomNodeResource.",
);

const grace = nullable(number("Seconds, as in the plugin's answer; null for the pod's own grace period."));

export const evictPodsAnswer = object({
  pods: list(object({ pod: podReference, reason: text(), force: flag(), gracePeriodSeconds: grace })),
  condition: nullable(conditionAnswer),
});

export const thresholdAnswer = object({
  ...thresholdValues,
  metType,
  scope: text(),
  gracePeriodSeconds: number("As in the plugin's answer: not validated, may be negative."),
  condition: nullable(conditionAnswer),
  candidateUids: list(text(), "The only pods to offer in GetTopEvictionPods; empty for all candidates."),
});

export const topAnswer = object({ pods: list(podReference), gracePeriodSeconds: grace });

/** The result of a call: the answer, or the error message. */
const answered = <T>(answer: Schema<T>) => either(object({ answer }), object({ failure: text(), late }));

export const pluginAnswers = object({
  plugin: text(),
  evictPods: answered(evictPodsAnswer),
  threshold: answered(thresholdAnswer),
});

export const topAnswers = object({ plugin: text(), top: answered(topAnswer) });

export const policy = named(
  "EvictionPolicy",
  object({
    burst: number("Most evictions started in a round; negative: no limit."),
    ranking,
    dryRunPlugins: list(
      text(),
      'Plugins whose requests are only recorded; "*" for all, "-name" for an exception.',
    ),
    fallbackPlugins: list(
      text(),
      "Plugins for which the ranking may select a pod while they name only pods that can't be evicted; as dryRunPlugins.",
    ),
    conditionTransitionPeriodMs: number("How long a condition stays after it was last reported as met."),
    taintPrefix: text('Of the keys of taints: "nodekeeper.dev".'),
    taintEffects: list(text(), "Those that conditions may have. Others are refused."),
    cooldownMs: number("How long no other pod is selected for a scope after its last victim was deleted."),
    releaseMarginMs: number("How long the deletion of an evicted pod may take beyond its grace period."),
    longestReleaseMs: number(
      "How long a terminating pod blocks further evictions for the same threshold at most, regardless of its grace period.",
    ),
    failedEvictionPauseMs: number("How long an eviction is not retried after a failure."),
    forgetPluginAfterMs: number("How long the grace timers of a plugin are kept after it disconnected."),
    limits: object(
      {
        windowMs: number(),
        perNode: nullable(number()),
        perNamespace: nullable(number()),
        perOwner: nullable(number()),
      },
      "Limits of evictions that start within `windowMs`; null for no limit.",
    ),
    skip: object(
      {
        labelKeys: list(text(), "With any value."),
        annotationKeys: list(text(), "With any value."),
        evictDaemonSetPods: flag(
          "Whether pods of DaemonSets may be evicted. Their controller recreates them on the same node.",
        ),
      },
      "Pods that are never candidates, in addition to critical, static, mirror and terminating ones.",
    ),
    grace: object(
      {
        shortestSeconds: number("Lower bound, at most `longestSeconds`."),
        longestSeconds: number("Upper bound."),
        allowZero: flag(
          "Whether 0 is allowed, which kills the pod immediately. If not, 0 falls back to the pod's own grace period.",
        ),
      },
      "Bounds of grace periods requested by plugins.",
    ),
  }),
);

export const roundRecord = named(
  "RoundRecord",
  object(
    {
      id: integer("Increases from round to round."),
      input: object({
        now: time(),
        nodeName: text(),
        pods: list(evictionPod),
        plugins: list(pluginAnswers, "One entry for each registered plugin."),
        outcomes: list(outcome, "Evictions that ended since the previous round."),
        policy,
        state,
        tops: list(topAnswers),
      }),
      decision,
    },
    "A round with its whole input and its decision.",
  ),
);
