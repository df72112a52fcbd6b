import { type RefusalReason, refusalReasons, unservedReasons } from "../reasons/index.ts";
import * as s from "../schemas/index.ts";
import {
  askSource,
  graceSeconds,
  kind,
  pending,
  qosClass,
  qosLevel,
  reference,
  sentBefore,
  state,
} from "../schemas/index.ts";

// The decision of a round in records: docs/eviction-records.md.

const reasons = Object.keys(refusalReasons) as RefusalReason[];

export const refusalReason = s.named(
  "RefusalReason",
  s.oneOf(reasons, "Why a requested pod was not evicted."),
);

export const refusalCounts = s.some(reasons, s.integer(), "Numbers of refusals by reason.");

const exclusionReason = s.oneOf([
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
  thresholdValue: s.nullable(s.number()),
  observedValue: s.nullable(s.number()),
  operator: s.oneOf(["lessThan", "greaterThan"], "How the observed value meets the threshold."),
  unit: s.optional(s.text('Of both values: "bytes", "%" or any other text.')),
};

export const metType = s.oneOf(["none", "soft", "hard"]);

const ask = s.object({
  plugin: s.text(),
  source: askSource,
  kind,
  scope: s.text(),
  reason: s.text(),
  threshold: s.nullable(
    s.object(thresholdValues, "The threshold that is met; null for pods of GetEvictPods."),
  ),
  gracePeriodSeconds: graceSeconds,
  graceProblem: s.nullable(s.text("Why the requested grace period was changed; null if it was not.")),
  selectedBy: s.optional(
    s.oneOf(
      ["ranking"],
      "Set if the plugin named only pods that can't be evicted, so the lowest-ranked pod was selected.",
    ),
  ),
  fallback: s.optional(
    s.object(
      {
        rounds: s.integer(),
        namesakeUid: s.optional(
          s.text("Another UID that the plugin named with the same namespace and name."),
        ),
      },
      "Why the ranking selected it: the plugin named only pods that can't be evicted, in so many rounds in a row.",
    ),
  ),
});

export const victim = s.named(
  "Victim",
  s.object({
    ...reference,
    order: s.integer("Position in the order of eviction, from 1."),
    kind,
    plugin: s.text("The plugin of the first request. The eviction counts for it and its scope."),
    scope: s.text(),
    reason: s.text(),
    gracePeriodSeconds: graceSeconds,
    sentBefore,
    asks: s.list(ask, "All requests for the pod. The first one determines the eviction."),
  }),
);

export const refusal = s.object({ ...reference, plugin: s.text(), reason: refusalReason, message: s.text() });

export const ranking = s.list(
  s.oneOf(["qosLevel", "qosClass", "priority", "scope"]),
  "Keys by which pods are ranked, the most significant first; then name, namespace and UID.",
);

const rankedFields = {
  ...reference,
  rank: s.integer("From 1, the first to be evicted."),
  qosLevel,
  qosClass,
  priority: s.number(),
  scope: s.nullable(
    s.text("Of the request that the decision is based on; null if no plugin requested the pod."),
  ),
  outcome: s.oneOf(
    ["victim", "waiting", "refused", "ineligible", "notAsked"],
    "`victim`: its eviction starts. `waiting`: queued because the burst is used up; evicted in a later round if it is " +
      "still requested then. `refused`: requested, but not evicted. `ineligible`: not requested, and can't be evicted " +
      "now. `notAsked`: not requested.",
  ),
  why: s.text("One sentence: why it is evicted, or why not."),
};

/** A candidate's rank, without the kind of request. */
export const neighbour = s.named("RankedPod", s.object(rankedFields));

const exclusion = s.object({
  ...reference,
  reason: exclusionReason,
  detail: s.text('"label example.com/keep"'),
});

export const withdrawal = s.object({
  ...reference,
  stage: s.oneOf(
    ["queued", "started"],
    "`queued`: it waited because of the burst limit. `started`: its eviction was started; the withdrawal is repeated each round until the eviction has ended.",
  ),
  reason: s.text(),
});

export const metThresholdFields = {
  ...thresholdValues,
  metType,
  scope: s.text(),
  gracePeriodSeconds: s.number("As in the plugin's answer: not validated, may be negative."),
  plugin: s.text(),
  since: s.time(),
  confirmed: s.flag("Whether it has been met for its grace period."),
  held: s.nullable(
    s.object(
      {
        reason: s.oneOf(["pendingRelease", "cooldown", "nodeLimit", "noEligiblePod"]),
        until: s.nullable(s.time("Latest end of the hold; null if unknown.")),
      },
      "Why GetTopEvictionPods was not called although the threshold is confirmed; null if it was called.",
    ),
  ),
  unserved: s.optional(
    s.object(
      {
        reason: s.oneOf(unservedReasons),
        message: s.text('"named 2 pods, none can be evicted now (1 with an unknown UID)"'),
        since: s.time("Since when no pod may be selected, even if the reason has changed since."),
        notOffered: s.optional(
          s.list(
            s.object({
              reason: refusalReason,
              pods: s.integer("Candidates."),
              until: s.nullable(
                s.time(
                  "When this reason ends for the first of them; another may apply then. Null if unknown.",
                ),
              ),
            }),
            "Candidates that the plugin could not choose, because they can't be evicted now; most pods first.",
          ),
        ),
      },
      "Why no pod may be selected for a confirmed hard threshold. Absent if one may be, or if it waits for the last victim.",
    ),
  ),
};

/** Set if the call exceeded its deadline. */
export const late = s.optional(s.constant(true));

export const callFailure = s.object({
  plugin: s.text(),
  call: s.oneOf(["getEvictPods", "thresholdMet", "getTopEvictionPods"]),
  failure: s.text(),
  late,
});

const nodeTaint = {
  key: s.text('"nodekeeper.dev/MemoryPressure"'),
  effect: s.text(),
  since: s.time("The value of `timeAdded`."),
  why: s.text("Which plugins report which values."),
};

export const decision = s.object({
  victims: s.list(victim),
  dryRunVictims: s.list(victim, "The additional pods that would be evicted if no plugin were in dry run."),
  ranking: s.list(s.object({ ...rankedFields, kind: s.nullable(kind) }), "All candidates in rank order."),
  exclusions: s.list(exclusion),
  refusals: s.list(refusal, "At most 200 per plugin; `refusalCounts` counts all."),
  refusalCounts,
  withdrawals: s.list(withdrawal),
  notifications: s.list(
    s.object({ ...reference, plugin: s.text(), reason: s.text() }),
    "Pods to be notified of a soft eviction request.",
  ),
  resumed: s.list(
    pending,
    "Evictions sent before a restart of the agent. They are followed and never sent again.",
  ),
  thresholds: s.list(s.object(metThresholdFields)),
  conditions: s.list(
    s.object({
      target: s.oneOf(["node", "customNodeResource"]),
      name: s.text(),
      effects: s.list(s.text(), "The effects that any plugin reports, sorted."),
      plugins: s.list(s.text(), "The plugins that report it, sorted."),
      why: s.text('"ts-evict reports disk 95 > threshold 90"; one entry per plugin, joined by "; ".'),
      since: s.time(),
    }),
    "Conditions of the node, merged from all plugins that report them.",
  ),
  taints: s.object(
    {
      node: s.list(s.object(nodeTaint)),
      customNodeResource: s.list(
        s.object({ ...nodeTaint, qosLevel: s.text("Of the pods that it applies to.") }),
      ),
    },
    "All desired taints. The agent's other taints are removed.",
  ),
  conditionProblems: s.list(
    s.object({
      condition: s.text(),
      plugins: s.list(s.text(), "The plugins that reported it, sorted."),
      reason: s.oneOf(["invalidName", "invalidEffect", "effectNotAllowed"]),
      message: s.text(),
    }),
    "Conditions, or effects of conditions, that do not become taints.",
  ),
  failures: s.list(callFailure, "Failed calls, sorted by plugin."),
  state,
});
