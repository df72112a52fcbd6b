import * as s from "../schemas/index.ts";
import {
  end,
  evictionPod,
  explainedCondition,
  kind,
  outcome,
  podReference,
  reference,
  storedCondition,
  strippedPod,
} from "../schemas/index.ts";
import * as decided from "./eviction-decision.ts";
import { roundRecord } from "./eviction-round.ts";

export const step = s.named(
  "EvictionStep",
  s.object(
    { uid: s.text(), at: s.time(), message: s.text('"pod deleted"') },
    "A step of an eviction, or an event.",
  ),
);

export const containerExit = s.object({
  id: s.text(),
  name: s.text(),
  exitCode: s.nullable(s.number()),
  reason: s.text(),
  at: s.nullable(s.time()),
  memoryLimit: s.optional(s.text()),
});

export const nodePod = s.named(
  "NodePod",
  s.object(
    {
      ...reference,
      seenAt: s.time("When the agent first observed it."),
      leftAt: s.nullable(s.time("When it was deleted; null while it exists.")),
      lastKnownAt: s.nullable(
        s.time("If its deletion was not observed: when the watch last showed that it existed."),
      ),
      pod: strippedPod,
      ending: s.object({
        deletion: s.nullable(s.object({ requestedAt: s.time(), gracePeriodSeconds: s.nullable(s.number()) })),
        disruption: s.nullable(
          s.object({
            reason: s.text(),
            message: s.text(),
            at: s.nullable(s.time()),
            manager: s.optional(s.text("The client that set the condition, as managedFields show.")),
          }),
        ),
        phase: s.text(),
        reason: s.text(),
        message: s.text(),
      }),
      exits: s.list(containerExit),
    },
    "The history of a pod that is or was on the node.",
  ),
);

const explainedThreshold = s.object({
  ...decided.metThresholdFields,
  dryRun: s.flag(),
  named: s.nullable(
    s.integer("Pods in the GetTopEvictionPods answer; null if the call was not made or failed."),
  ),
});

const explainedRoundFields = {
  id: s.integer(),
  at: s.time(),
  pod: s.nullable(evictionPod),
  thresholds: s.list(explainedThreshold),
  victim: s.nullable(decided.victim),
  dryRunVictim: s.nullable(decided.victim),
  place: s.nullable(decided.neighbour),
  exclusion: s.nullable(s.object({ reason: s.text(), detail: s.text() })),
  refusals: s.list(decided.refusal),
  ranking: decided.ranking,
  candidates: s.integer(),
  others: s.list(decided.neighbour),
  withdrawals: s.list(decided.withdrawal),
  outcome: s.nullable(outcome),
  failures: s.list(decided.callFailure),
};

/** A round from a pod's point of view. */
export const explainedRound = s.object(explainedRoundFields);

export const recordCoverage = s.named(
  "RecordCoverage",
  s.object(
    {
      oldest: s.nullable(s.time("Since when records are complete, except for the gaps; null if unknown.")),
      requests: s.optional(s.time("The same for rounds without consequence and for refusals.")),
      gaps: s.list(s.object({ from: s.time(), to: s.time(), why: s.text() }), "Oldest first."),
    },
    "Since when, and except for which gaps, records of victims, withdrawals, ended evictions and taints are complete. Only there does the absence of a record prove anything.",
  ),
);

export const podExplanation = s.named(
  "PodExplanation",
  s.object(
    {
      ...reference,
      rounds: s.list(
        s.object({
          ...explainedRoundFields,
          times: s.integer("Number of consecutive equal rounds that this entry stands for."),
          until: s.time(),
        }),
        "Rounds that concern the pod, oldest first, at most 50.",
      ),
      omitted: s.integer(),
      inProgress: s.optional(
        s.flag(
          "Whether an eviction of the pod is in progress, by the agent's state; absent if there is none.",
        ),
      ),
      selectedAt: s.optional(
        s.time(
          "Of the eviction in progress: the time of the round that selected the pod, even if that round is not recorded.",
        ),
      ),
      steps: s.list(step),
      history: s.nullable(nodePod),
      events: s.list(step),
      otherUids: s.list(s.text()),
      recordsSince: s.nullable(s.time()),
      coverage: recordCoverage,
    },
    "Why a pod was evicted, deleted or kept.",
  ),
);

export const explainedTaint = s.object({
  taint: s.text('"nodekeeper.dev/DiskHot:NoSchedule"'),
  isOwn: s.flag("Whether the agent added it, as its annotation and managedFields show."),
  isDesired: s.flag("Whether a condition of the last round requires it."),
});

export const nodeExplanation = s.named(
  "NodeExplanation",
  s.object(
    {
      nodeName: s.nullable(s.text()),
      at: s.nullable(s.time("The last round, or the agent's start before the first.")),
      transitionMs: s.nullable(
        s.number("How long a condition stays after it was last reported, by the configuration in force."),
      ),
      conditions: s.list(explainedCondition),
      taints: s.nullable(
        s.list(
          explainedTaint,
          "Taints of the Node that the agent added, that have its prefix, or that equal the taint of a condition; null before the Node was read.",
        ),
      ),
      isDryRun: s.flag("Whether every plugin is in dry run: taints are left as they are."),
      events: s.list(step),
      recordsSince: s.nullable(s.time()),
      coverage: recordCoverage,
    },
    "The conditions and taints that eviction sets on the node, with their owners and when they expire.",
  ),
);

export const roundSummary = s.named(
  "RoundSummary",
  s.object({
    id: s.integer(),
    at: s.time(),
    pods: s.integer(),
    candidates: s.integer(),
    plugins: s.integer(),
    met: s.list(s.text('"memory-pressure (hard): memory 94.1 > threshold 90"')),
    victims: s.list(podReference),
    dryRunVictims: s.list(podReference),
    refusals: decided.refusalCounts,
    paused: s.optional(s.list(s.object({ retryAt: s.time(), budget: s.nullable(s.text()) }))),
    withdrawals: s.integer(),
    outcomes: s.list(
      s.object({
        ...reference,
        ...end,
      }),
    ),
    failures: s.list(s.text()),
  }),
);

export const recordPage = s.object({
  records: s.list(roundRecord),
  tooLarge: s.list(
    s.object({ id: s.integer(), bytes: s.integer() }),
    "Rounds that exceed the largest answer.",
  ),
  next: s.optional(s.integer("The id after which to continue; absent at the end.")),
});

export const historyPods = s.object(
  {
    items: s.list(
      s.object({
        ...reference,
        seenAt: s.time("When the agent first observed it."),
        leftAt: s.nullable(s.time("When it was deleted; null while it exists.")),
      }),
      "Existing pods, then the others, last deleted first.",
    ),
    more: s.flag("Whether more pods match."),
  },
  "Pods that are or were on the node, as far back as the history reaches.",
);

export const historyPage = s.object({
  lines: s.list(
    s.either(
      s.object({ kind: s.constant("pod"), pod: nodePod, events: s.list(step), steps: s.list(step) }),
      s.object({
        kind: s.constant("node"),
        state: s.object({ at: s.nullable(s.time()), conditions: s.list(storedCondition) }),
        events: s.list(step),
        coverage: s.optional(recordCoverage),
      }),
    ),
  ),
  next: s.optional(s.integer("The number after which to continue; absent at the end.")),
});

export const evictionPage = s.object({
  items: s.list(
    s.named(
      "Eviction",
      s.object({
        ...reference,
        at: s.time("When it was decided."),
        round: s.integer("The id of the round."),
        plugin: s.text(),
        scope: s.text(),
        kind,
        reason: s.text(),
        dryRun: s.flag("Whether it was only recorded, because the plugin is in dry run."),
        outcome: s.nullable(
          s.object(
            {
              at: s.time(),
              ...end,
            },
            "Null while the eviction is in progress, or if it ended at least 1,000 recorded rounds later. `unknown` also if it was not recorded, for example because the disk was full.",
          ),
        ),
      }),
    ),
    "Oldest first. An eviction whose selection is not recorded, for example because the disk was full, is not listed: `eviction/explain` has its outcome.",
  ),
  coverage: recordCoverage,
  next: s.optional(s.integer("The id after which to continue; absent at the end.")),
});

export const reading = s.named(
  "Reading",
  s.object(
    {
      plugin: s.text(),
      scope: s.text("The signal; empty if the plugin named none."),
      observed: s.nullable(s.number("Null if the plugin reports no value while the threshold is not met.")),
      threshold: s.nullable(s.number()),
      operator: decided.thresholdValues.operator,
      unit: s.optional(s.text()),
      met: decided.metType,
    },
    "A plugin's observed value against its threshold.",
  ),
);

export const signalHistory = s.object({
  minutes: s.list(
    s.object({ from: s.time("Of the first round."), to: s.time("Of the last round.") }),
    "At most 1,440 of about a minute each, in the order in which they were recorded. There is no record of the time between two that do not adjoin.",
  ),
  signals: s.list(
    s.named(
      "SignalHistory",
      s.object(
        {
          plugin: s.text(),
          scope: s.text("Empty if the plugin named none."),
          operator: decided.thresholdValues.operator,
          unit: s.optional(s.text()),
          observed: s.list(s.nullable(s.number())),
          threshold: s.list(s.nullable(s.number())),
          met: s.list(
            s.nullable(decided.metType),
            "Null if there is no reading of the signal in the minute.",
          ),
        },
        "Values for each of `minutes`: the most severe reading of the minute, not an average.",
      ),
    ),
    "At most 64, 8 of one plugin.",
  ),
});

export const roundReadings = s.named(
  "RoundReadings",
  s.object({ at: s.time("When the round asked the plugins."), readings: s.list(reading) }),
);

export const readings = s.object({
  rounds: s.list(
    roundReadings,
    "Recorded rounds, in which something happened, and all of the last 120; oldest first.",
  ),
  next: s.optional(s.integer("The id after which to continue; absent at the end.")),
});
