import { type RefusalReason, refusalReasons, unservedReasons } from "../decide/index.ts";
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
  unit: optional(text()),
};

export const metType = oneOf(["none", "soft", "hard"]);

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
  fallback: optional(
    object(
      { rounds: integer(), namesakeUid: optional(text()) },
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
    plugin: text(),
    scope: text(),
    reason: text(),
    gracePeriodSeconds: graceSeconds,
    asks: list(ask),
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
  scope: nullable(text()),
  outcome: oneOf(["victim", "waiting", "refused", "ineligible", "notAsked"]),
  why: text("One sentence: why it is evicted, or why not."),
};

/** A candidate's rank, without the kind of request. */
export const neighbour = named("RankedPod", object(rankedFields));

const exclusion = object({ ...reference, reason: exclusionReason, detail: text() });

export const withdrawal = object({ ...reference, stage: oneOf(["queued", "started"]), reason: text() });

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
  unserved: optional(
    object(
      { reason: oneOf([...unservedReasons]), message: text(), since: time() },
      "Why no pod may be selected for a confirmed hard threshold.",
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

const nodeTaint = { key: text(), effect: text(), since: time(), why: text() };

export const decision = object({
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
