import {
  callFailure,
  metThresholdFields,
  metType,
  neighbour,
  ranking,
  refusal,
  refusalCounts,
  thresholdValues,
  victim,
  withdrawal,
} from "./eviction-decision.ts";
import { evictionPod, podReference, reference, strippedPod } from "./eviction-pod.ts";
import { roundRecord } from "./eviction-round.ts";
import { explainedCondition, kind, outcome, outcomeResult, storedCondition } from "./eviction-state.ts";
import {
  constant,
  either,
  flag,
  integer,
  list,
  named,
  nullable,
  number,
  object,
  optional,
  text,
  time,
} from "./schema.ts";

export const step = named(
  "EvictionStep",
  object({ uid: text(), at: time(), message: text('"pod deleted"') }, "A step of an eviction, or an event."),
);

export const containerExit = object({
  id: text(),
  name: text(),
  exitCode: nullable(number()),
  reason: text(),
  at: nullable(time()),
  memoryLimit: optional(text()),
});

export const nodePod = named(
  "NodePod",
  object(
    {
      ...reference,
      seenAt: time("When the agent first observed it."),
      leftAt: nullable(time("When it was deleted; null while it exists.")),
      lastKnownAt: nullable(time("If its deletion was not observed: when it was last known to exist.")),
      pod: strippedPod,
      ending: object({
        deletion: nullable(object({ requestedAt: time(), gracePeriodSeconds: nullable(number()) })),
        disruption: nullable(
          object({
            reason: text(),
            message: text(),
            at: nullable(time()),
            manager: optional(text("The client that set the condition, as managedFields show.")),
          }),
        ),
        phase: text(),
        reason: text(),
        message: text(),
      }),
      exits: list(containerExit),
    },
    "The history of a pod that is or was on the node.",
  ),
);

const explainedThreshold = object({
  ...metThresholdFields,
  dryRun: flag(),
  named: nullable(integer("Pods in the GetTopEvictionPods answer; null if the call was not made or failed.")),
});

const explainedRoundFields = {
  id: integer(),
  at: time(),
  pod: nullable(evictionPod),
  thresholds: list(explainedThreshold),
  victim: nullable(victim),
  dryRunVictim: nullable(victim),
  place: nullable(neighbour),
  exclusion: nullable(object({ reason: text(), detail: text() })),
  refusals: list(refusal),
  ranking,
  candidates: integer(),
  others: list(neighbour),
  withdrawals: list(withdrawal),
  outcome: nullable(outcome),
  failures: list(callFailure),
};

/** A round from a pod's point of view. */
export const explainedRound = object(explainedRoundFields);

export const recordCoverage = named(
  "RecordCoverage",
  object(
    {
      oldest: nullable(time("Since when records are complete, except for the gaps; null if unknown.")),
      requests: optional(time("The same for rounds without consequence and for refusals.")),
      gaps: list(object({ from: time(), to: time(), why: text() }), "Oldest first."),
    },
    "Since when, and except for which gaps, records of victims, withdrawals, ended evictions and taints are complete. Only there does the absence of a record prove anything.",
  ),
);

export const podExplanation = named(
  "PodExplanation",
  object(
    {
      ...reference,
      rounds: list(
        object({
          ...explainedRoundFields,
          times: integer("Number of consecutive equal rounds that this entry stands for."),
          until: time(),
        }),
        "Rounds that concern the pod, oldest first, at most 50.",
      ),
      omitted: integer(),
      steps: list(step),
      history: nullable(nodePod),
      events: list(step),
      otherUids: list(text()),
      recordsSince: nullable(time()),
      coverage: recordCoverage,
    },
    "Why a pod was evicted, deleted or kept.",
  ),
);

export const explainedTaint = object({
  taint: text('"nodekeeper.dev/DiskHot:NoSchedule"'),
  isOwn: flag("Whether the agent added it, as its annotation and managedFields show."),
  isDesired: flag("Whether a condition of the last round requires it."),
});

export const nodeExplanation = named(
  "NodeExplanation",
  object(
    {
      nodeName: nullable(text()),
      at: nullable(time("The last round.")),
      transitionMs: nullable(
        number("How long a condition stays after it was last reported, by the configuration in force."),
      ),
      conditions: list(explainedCondition),
      taints: nullable(
        list(
          explainedTaint,
          "Taints of the Node that the agent added, that have its prefix, or that equal the taint of a condition; null before the Node was read.",
        ),
      ),
      isDryRun: flag("Whether every plugin is in dry run: taints are left as they are."),
      events: list(step),
      recordsSince: nullable(time()),
      coverage: recordCoverage,
    },
    "The conditions and taints that eviction sets on the node, with their owners and when they expire.",
  ),
);

export const roundSummary = named(
  "RoundSummary",
  object({
    id: integer(),
    at: time(),
    pods: integer(),
    candidates: integer(),
    plugins: integer(),
    met: list(text('"memory-pressure (hard): memory 94.1 > threshold 90"')),
    victims: list(podReference),
    dryRunVictims: list(podReference),
    refusals: refusalCounts,
    paused: optional(list(object({ retryAt: time(), budget: nullable(text()) }))),
    withdrawals: integer(),
    outcomes: list(
      object({
        ...reference,
        result: outcomeResult,
        message: text(),
      }),
    ),
    failures: list(text()),
  }),
);

export const recordPage = object({
  records: list(roundRecord),
  tooLarge: list(object({ id: integer(), bytes: integer() }), "Rounds that exceed the largest answer."),
  next: optional(integer("The id after which to continue; absent at the end.")),
});

export const historyPods = object(
  {
    items: list(
      object({
        ...reference,
        seenAt: time("When the agent first observed it."),
        leftAt: nullable(time("When it was deleted; null while it exists.")),
      }),
      "Existing pods, then the others, last deleted first.",
    ),
    more: flag("Whether more pods match."),
  },
  "Pods that are or were on the node, as far back as the history reaches.",
);

export const historyPage = object({
  lines: list(
    either(
      object({ kind: constant("pod"), pod: nodePod, events: list(step), steps: list(step) }),
      object({
        kind: constant("node"),
        state: object({ at: nullable(time()), conditions: list(storedCondition) }),
        events: list(step),
        coverage: optional(recordCoverage),
      }),
    ),
  ),
  next: optional(integer("The number after which to continue; absent at the end.")),
});

export const evictionPage = object({
  items: list(
    named(
      "Eviction",
      object({
        ...reference,
        at: time("When it was decided."),
        round: integer("The id of the round."),
        plugin: text(),
        scope: text(),
        kind,
        reason: text(),
        dryRun: flag("Whether it was only recorded, because the plugin is in dry run."),
        outcome: nullable(
          object(
            {
              at: time(),
              result: outcomeResult,
              message: text(),
            },
            "Null while it is unknown, or if it is in a later page.",
          ),
        ),
      }),
    ),
    "Oldest first.",
  ),
  coverage: recordCoverage,
  next: optional(integer("The id after which to continue; absent at the end.")),
});

export const reading = named(
  "Reading",
  object(
    {
      plugin: text(),
      scope: text("The signal; empty if the plugin named none."),
      observed: nullable(number("Null if the plugin reports no value while the threshold is not met.")),
      threshold: nullable(number()),
      operator: thresholdValues.operator,
      unit: optional(text()),
      met: metType,
    },
    "A plugin's observed value against its threshold.",
  ),
);

export const roundReadings = named(
  "RoundReadings",
  object({ at: time("When the round asked the plugins."), readings: list(reading) }),
);

export const readings = object({
  rounds: list(
    roundReadings,
    "Recorded rounds, in which something happened, and all of the last 120; oldest first.",
  ),
  next: optional(integer("The id after which to continue; absent at the end.")),
});
