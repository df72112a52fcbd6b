import { type RefusalReason, refusalReasons } from "../../eviction/index.ts";
import {
  either,
  flag,
  integer,
  list,
  map,
  named,
  nullable,
  number,
  object,
  oneOf,
  optional,
  some,
  text,
  time,
} from "./schema.ts";

// The input and the decision of a round, as records have them: docs/eviction-records.md.

const reference = { uid: text(), namespace: text(), name: text() };

export const podReference = named("PodReference", object(reference));

const reasons = Object.keys(refusalReasons) as RefusalReason[];

export const refusalReason = named("RefusalReason", oneOf(reasons, "Why a requested pod was not evicted."));

export const refusalCounts = some(reasons, integer(), "Numbers of refusals by reason.");

const qosLevel = oneOf(["reclaimed_cores", "shared_cores", "dedicated_cores", "system_cores", "unknown"]);
const qosClass = oneOf(["BestEffort", "Burstable", "Guaranteed"]);
const kind = oneOf(["soft", "forced"], "`forced`: must be evicted. `soft`: at most one pod per round.");
const graceSeconds = nullable(number("Seconds; null for the pod's own."));
const askSource = oneOf(["threshold", "evictPods"]);
const operator = oneOf(["lessThan", "greaterThan"]);
const metType = oneOf(["none", "soft", "hard"]);
const exclusionReason = oneOf([
  "otherNode",
  "finished",
  "terminating",
  "mirror",
  "static",
  "critical",
  "systemQos",
  "daemonSet",
  "skipLabel",
  "skipAnnotation",
]);

const podFields = {
  ...reference,
  nodeName: text(),
  phase: text(),
  owner: nullable(object({ kind: text(), name: text(), uid: text() })),
  qosLevel,
  qosClass,
  priority: number(),
  priorityClassName: text(),
  deletionTimestamp: nullable(time()),
  startTime: nullable(time("When the kubelet acknowledged the pod.")),
  gracePeriodSeconds: number(),
  isStatic: flag(),
  isMirror: flag(),
  softEvictNotify: flag("Whether it is annotated to be notified of soft evictions instead of being evicted."),
};

/** A pod of the history, without labels and annotations. */
export const strippedPod = object(podFields);

export const evictionPod = named(
  "EvictionPod",
  object(
    { ...podFields, labels: map(text()), annotationKeys: list(text()) },
    "What eviction reads of a pod. Values of annotations are never kept.",
  ),
);

const thresholdValues = {
  thresholdValue: nullable(number()),
  observedValue: nullable(number()),
  operator,
  unit: optional(text()),
};

const condition = object({
  target: oneOf(["node", "customNodeResource"]),
  name: text(),
  effects: list(text()),
  met: flag(),
});

const failure = object({ failure: text() });

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

const budget = nullable(
  object({
    name: nullable(text()),
    currentHealthy: nullable(number()),
    desiredHealthy: nullable(number()),
  }),
);

export const outcome = named(
  "EvictionOutcome",
  object(
    {
      uid: text(),
      namespace: optional(text()),
      name: optional(text()),
      result: oneOf(["gone", "overdue", "failed", "withdrawn"], "`gone`: the pod was deleted."),
      sent: optional(flag()),
      message: text(),
      budget: optional(budget),
    },
    "How an eviction ended.",
  ),
);

const pressure = object({ plugin: text(), scope: text(), source: askSource });

const pending = object({
  ...reference,
  plugin: text(),
  scope: text(),
  kind,
  source: askSource,
  reason: text(),
  others: optional(list(pressure)),
  gracePeriodSeconds: graceSeconds,
  since: time(),
  acceptedAt: nullable(time()),
  deadline: nullable(time()),
});

const conditionFields = {
  plugin: text("The plugin that reports it: its owner."),
  target: oneOf(["node", "customNodeResource"]),
  name: text(),
  effects: list(text()),
  since: time(),
  cause: optional(text('"disk 95 > threshold 90"')),
};

export const storedCondition = object({ ...conditionFields, lastSeen: time() });

export const explainedCondition = named(
  "Condition",
  object({
    ...conditionFields,
    taints: list(text('"nodekeeper.dev/DiskHot:NoSchedule"')),
    lastMet: time("When the plugin last reported it."),
    isMet: flag("Whether the plugin reported it in the last round."),
    until: nullable(time("When it is cleared unless it is reported again; null while it is met.")),
  }),
);

const state = object({
  version: integer(),
  at: nullable(time()),
  boot: nullable(object({ id: text(), uptimeMs: number() })),
  thresholds: list(
    object({
      plugin: text(),
      scope: text(),
      metType: oneOf(["soft", "hard"]),
      since: time(),
      reportedAt: time(),
      lastSeen: time(),
    }),
  ),
  conditions: list(storedCondition),
  queue: list(object({ ...reference, since: time() })),
  pending: list(pending),
  interrupted: list(pending),
  recent: list(
    object({
      uid: text(),
      namespace: text(),
      ownerUid: nullable(text()),
      plugin: text(),
      scope: text(),
      others: optional(list(pressure)),
      at: time(),
      releasedAt: nullable(time()),
    }),
  ),
  paused: list(object({ uid: text(), until: time(), reason: text(), budget })),
  unusable: list(object({ plugin: text(), rounds: integer() })),
});

const policy = named(
  "EvictionPolicy",
  object({
    burst: number("Most evictions started in a round; negative: no limit."),
    dryRunPlugins: list(text(), 'Plugins whose requests are only recorded; "*" for all.'),
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

const ask = object({
  plugin: text(),
  source: askSource,
  kind,
  scope: text(),
  reason: text(),
  threshold: nullable(object(thresholdValues)),
  gracePeriodSeconds: graceSeconds,
  graceProblem: nullable(text()),
  selectedBy: optional(oneOf(["ranking"])),
});

export const victim = named(
  "Victim",
  object({
    ...reference,
    order: integer("Position in the order of eviction, from 1."),
    kind,
    plugin: text(),
    scope: text(),
    reason: text(),
    gracePeriodSeconds: graceSeconds,
    asks: list(ask),
  }),
);

export const refusal = object({ ...reference, plugin: text(), reason: refusalReason, message: text() });

const rankedFields = {
  ...reference,
  rank: integer("From 1, the first to be evicted."),
  qosLevel,
  qosClass,
  priority: number(),
  scope: nullable(text()),
  outcome: oneOf(["victim", "waiting", "refused", "ineligible", "notAsked"]),
  why: text("One sentence: why it is evicted, or why not."),
};

/** A candidate's rank without the kind of the request. */
export const neighbour = named("RankedPod", object(rankedFields));

const exclusion = object({ ...reference, reason: exclusionReason, detail: text() });

export const withdrawal = object({ ...reference, stage: oneOf(["queued", "begun"]), reason: text() });

export const metThresholdFields = {
  ...thresholdValues,
  metType,
  scope: text(),
  gracePeriodSeconds: number(),
  plugin: text(),
  since: time(),
  confirmed: flag("Whether it has been met for its grace period."),
  held: nullable(
    object(
      {
        reason: oneOf(["pendingRelease", "cooldown", "nodeLimit", "noEligiblePod"]),
        until: nullable(time()),
      },
      "Why a confirmed threshold selects no pod.",
    ),
  ),
};

export const callFailure = object({
  plugin: text(),
  call: oneOf(["getEvictPods", "thresholdMet", "getTopEvictionPods"]),
  failure: text(),
});

const nodeTaint = { key: text(), effect: text(), since: time(), why: text() };

const decision = object({
  victims: list(victim),
  dryRunVictims: list(victim),
  ranking: list(object({ ...rankedFields, kind: nullable(kind) })),
  exclusions: list(exclusion),
  refusals: list(refusal),
  refusalCounts,
  withdrawals: list(withdrawal),
  notifications: list(object({ ...reference, plugin: text(), reason: text() })),
  resumed: list(pending),
  thresholds: list(object(metThresholdFields)),
  conditions: list(
    object({
      target: oneOf(["node", "customNodeResource"]),
      name: text(),
      effects: list(text()),
      plugins: list(text()),
      why: text(),
      since: time(),
    }),
  ),
  taints: object({
    node: list(object(nodeTaint)),
    customNodeResource: list(object({ ...nodeTaint, qosLevel: text() })),
  }),
  conditionProblems: list(
    object({
      condition: text(),
      plugins: list(text()),
      reason: oneOf(["invalidName", "invalidEffect", "effectNotAllowed"]),
      message: text(),
    }),
  ),
  failures: list(callFailure),
  state,
});

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
