import { type RefusalReason, refusalReasons, unservedReasons } from "../reasons/index.ts";
import { qosClass, qosLevel, reference } from "./eviction-pod.ts";
import { askSource, graceSeconds, kind, pending, state } from "./eviction-state.ts";
import {
  constant,
  flag,
  integer,
  list,
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

// The decision of a round in records: docs/eviction-records.md.

const reasons = Object.keys(refusalReasons) as RefusalReason[];

export const refusalReason = named("RefusalReason", oneOf(reasons, "Why a requested pod was not evicted."));

export const refusalCounts = some(reasons, integer(), "Numbers of refusals by reason.");

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

export const thresholdValues = {
  thresholdValue: nullable(number()),
  observedValue: nullable(number()),
  operator: oneOf(["lessThan", "greaterThan"], "How the observed value meets the threshold."),
  unit: optional(text('Of both values: "bytes", "%" or any other text.')),
};

export const metType = oneOf(["none", "soft", "hard"]);

const ask = object({
  plugin: text(),
  source: askSource,
  kind,
  scope: text(),
  reason: text(),
  threshold: nullable(object(thresholdValues, "The threshold that is met; null for pods of GetEvictPods.")),
  gracePeriodSeconds: graceSeconds,
  graceProblem: nullable(text("Why the requested grace period was changed; null if it was not.")),
  selectedBy: optional(
    oneOf(
      ["ranking"],
      "Set if the plugin named only pods that can't be evicted, so the lowest-ranked pod was selected.",
    ),
  ),
  fallback: optional(
    object(
      {
        rounds: integer(),
        namesakeUid: optional(text("Another UID that the plugin named with the same namespace and name.")),
      },
      "Why the ranking selected it: the plugin named only pods that can't be evicted, in so many rounds in a row.",
    ),
  ),
});

export const victim = named(
  "Victim",
  object({
    ...reference,
    order: integer("Position in the order of eviction, from 1."),
    kind,
    plugin: text("The plugin of the first request. The eviction counts for it and its scope."),
    scope: text(),
    reason: text(),
    gracePeriodSeconds: graceSeconds,
    asks: list(ask, "All requests for the pod. The first one determines the eviction."),
  }),
);

export const refusal = object({ ...reference, plugin: text(), reason: refusalReason, message: text() });

export const ranking = list(
  oneOf(["qosLevel", "qosClass", "priority", "scope"]),
  "Keys by which pods are ranked, the most significant first; then name, namespace and UID.",
);

const rankedFields = {
  ...reference,
  rank: integer("From 1, the first to be evicted."),
  qosLevel,
  qosClass,
  priority: number(),
  scope: nullable(text("Of the request that the decision is based on; null if no plugin requested the pod.")),
  outcome: oneOf(
    ["victim", "waiting", "refused", "ineligible", "notAsked"],
    "`victim`: its eviction starts. `waiting`: queued because the burst is used up; evicted in a later round if it is " +
      "still requested then. `refused`: requested, but not evicted. `ineligible`: not requested, and can't be evicted " +
      "now. `notAsked`: not requested.",
  ),
  why: text("One sentence: why it is evicted, or why not."),
};

/** A candidate's rank, without the kind of request. */
export const neighbour = named("RankedPod", object(rankedFields));

const exclusion = object({
  ...reference,
  reason: exclusionReason,
  detail: text('"label example.com/keep"'),
});

export const withdrawal = object({
  ...reference,
  stage: oneOf(
    ["queued", "started"],
    "`queued`: it waited because of the burst limit. `started`: its eviction was started; the withdrawal is repeated each round until the eviction has ended.",
  ),
  reason: text(),
});

export const metThresholdFields = {
  ...thresholdValues,
  metType,
  scope: text(),
  gracePeriodSeconds: number("As in the plugin's answer: not validated, may be negative."),
  plugin: text(),
  since: time(),
  confirmed: flag("Whether it has been met for its grace period."),
  held: nullable(
    object(
      {
        reason: oneOf(["pendingRelease", "cooldown", "nodeLimit", "noEligiblePod"]),
        until: nullable(time("Latest end of the hold; null if unknown.")),
      },
      "Why GetTopEvictionPods was not called although the threshold is confirmed; null if it was called.",
    ),
  ),
  unserved: optional(
    object(
      {
        reason: oneOf(unservedReasons),
        message: text('"named 2 pods, none can be evicted now (1 with an unknown UID)"'),
        since: time("Since when no pod may be selected, even if the reason has changed since."),
      },
      "Why no pod may be selected for a confirmed hard threshold. Absent if one may be, or if it waits for the last victim.",
    ),
  ),
};

/** Set if the call exceeded its deadline. */
export const late = optional(constant(true));

export const callFailure = object({
  plugin: text(),
  call: oneOf(["getEvictPods", "thresholdMet", "getTopEvictionPods"]),
  failure: text(),
  late,
});

const nodeTaint = {
  key: text('"nodekeeper.dev/MemoryPressure"'),
  effect: text(),
  since: time("The value of `timeAdded`."),
  why: text("Which plugins report which values."),
};

export const decision = object({
  victims: list(victim),
  dryRunVictims: list(victim, "The additional pods that would be evicted if no plugin were in dry run."),
  ranking: list(object({ ...rankedFields, kind: nullable(kind) }), "All candidates in rank order."),
  exclusions: list(exclusion),
  refusals: list(refusal, "At most 200 per plugin; `refusalCounts` counts all."),
  refusalCounts,
  withdrawals: list(withdrawal),
  notifications: list(
    object({ ...reference, plugin: text(), reason: text() }),
    "Pods to be notified of a soft eviction request.",
  ),
  resumed: list(
    pending,
    "Evictions sent before a restart of the agent. They are followed and never sent again.",
  ),
  thresholds: list(object(metThresholdFields)),
  conditions: list(
    object({
      target: oneOf(["node", "customNodeResource"]),
      name: text(),
      effects: list(text(), "The effects that any plugin reports, sorted."),
      plugins: list(text(), "The plugins that report it, sorted."),
      why: text('"ts-evict reports disk 95 > threshold 90"; one entry per plugin, joined by "; ".'),
      since: time(),
    }),
    "Conditions of the node, merged from all plugins that report them.",
  ),
  taints: object(
    {
      node: list(object(nodeTaint)),
      customNodeResource: list(object({ ...nodeTaint, qosLevel: text("Of the pods that it applies to.") })),
    },
    "All desired taints. The agent's other taints are removed.",
  ),
  conditionProblems: list(
    object({
      condition: text(),
      plugins: list(text(), "The plugins that reported it, sorted."),
      reason: oneOf(["invalidName", "invalidEffect", "effectNotAllowed"]),
      message: text(),
    }),
    "Conditions, or effects of conditions, that do not become taints.",
  ),
  failures: list(callFailure, "Failed calls, sorted by plugin."),
  state,
});
