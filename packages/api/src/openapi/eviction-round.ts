import { decision, late, metType, ranking, thresholdValues } from "./eviction-decision.ts";
import { evictionPod, podReference } from "./eviction-pod.ts";
import { outcome, state } from "./eviction-state.ts";
import { either, flag, integer, list, named, nullable, number, object, oneOf, text, time } from "./schema.ts";

// A round and its input in records: docs/eviction-records.md.

const condition = object({
  target: oneOf(["node", "customNodeResource"]),
  name: text(),
  effects: list(text()),
  met: flag(),
});

const failure = object({ failure: text(), late });

const pluginAnswers = object({
  plugin: text(),
  evictPods: either(
    object({
      answer: object({
        pods: list(
          object({
            pod: podReference,
            reason: text(),
            force: flag(),
            gracePeriodSeconds: nullable(number()),
          }),
        ),
        condition: nullable(condition),
      }),
    }),
    failure,
  ),
  threshold: either(
    object({
      answer: object({
        ...thresholdValues,
        metType,
        scope: text(),
        gracePeriodSeconds: number(),
        condition: nullable(condition),
        candidateUids: list(text()),
      }),
    }),
    failure,
  ),
});

const topAnswers = object({
  plugin: text(),
  top: either(
    object({ answer: object({ pods: list(podReference), gracePeriodSeconds: nullable(number()) }) }),
    failure,
  ),
});

const policy = named(
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
    conditionTransitionPeriodMs: number(),
    taintPrefix: text(),
    taintEffects: list(text()),
    cooldownMs: number(),
    releaseMarginMs: number(),
    longestReleaseMs: number(),
    failedEvictionPauseMs: number(),
    forgetPluginAfterMs: number(),
    limits: object({
      windowMs: number(),
      perNode: nullable(number()),
      perNamespace: nullable(number()),
      perOwner: nullable(number()),
    }),
    skip: object({ labelKeys: list(text()), annotationKeys: list(text()), evictDaemonSetPods: flag() }),
    grace: object({ shortestSeconds: number(), longestSeconds: number(), allowZero: flag() }),
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
        plugins: list(pluginAnswers),
        outcomes: list(outcome),
        policy,
        state,
        tops: list(topAnswers),
      }),
      decision,
    },
    "A round with its whole input and its decision.",
  ),
);
