import { reference } from "./eviction-pod.ts";
import {
  flag,
  integer,
  list,
  named,
  nullable,
  number,
  object,
  oneOf,
  optional,
  text,
  time,
} from "./schema.ts";

// State that one eviction round carries over to the next.

export const kind = oneOf(
  ["soft", "forced"],
  "`forced`: must be evicted. `soft`: at most one pod per round.",
);
export const graceSeconds = nullable(number("Seconds; null for the pod's own."));
export const askSource = oneOf(
  ["threshold", "evictPods"],
  "Whether the plugin requested the pod by its threshold (GetTopEvictionPods) or by name (GetEvictPods).",
);

export const outcomeResult = oneOf(
  ["terminated", "superseded", "unknown", "overdue", "failed", "withdrawn"],
  "`terminated`: a request of the agent was accepted, and the pod was then deleted, or its containers were stopped. " +
    "`superseded`: the pod ended before a request of the agent was accepted. `unknown`: the pod ended after a request " +
    "was sent, and whether that was accepted is not recorded. `overdue`: accepted, and still terminating after its " +
    "deadline; another outcome follows.",
);

export const budget = nullable(
  object(
    {
      name: nullable(text('"default/web"; null if the API server did not name it.')),
      currentHealthy: nullable(number("Null if the API server's message does not contain it.")),
      desiredHealthy: nullable(number("Null if the API server's message does not contain it.")),
    },
    "The PodDisruptionBudget that refused the eviction, from the API server's response.",
  ),
);

export const outcome = named(
  "EvictionOutcome",
  object(
    {
      uid: text(),
      namespace: optional(text("Of the pod; absent in older records, as the name.")),
      name: optional(text()),
      result: outcomeResult,
      sent: optional(
        flag("Whether the API server or the runtime accepted the eviction or may have accepted it."),
      ),
      acceptedAt: optional(time("When it was accepted; absent if it was not.")),
      endedAt: optional(time("Absent if unknown.")),
      message: text('"429: PodDisruptionBudget default/web allows no disruption now"'),
      budget: optional(budget),
    },
    "How an eviction ended.",
  ),
);

export const pressure = object(
  { plugin: text(), scope: text(), source: askSource },
  "The origin of requests: a plugin's threshold with its scope, or requests of the plugin by name.",
);
const others = optional(list(pressure, "Other pressures that requested the pod and wait for its deletion."));

export const pending = object({
  ...reference,
  plugin: text(),
  scope: text(),
  kind,
  source: askSource,
  reason: text(),
  others,
  gracePeriodSeconds: graceSeconds,
  since: time("When it was decided."),
  sendingAt: nullable(time("When its first request was about to be sent; null if none was.")),
  acceptedAt: nullable(time("When the API server or the container runtime accepted it.")),
  deadline: nullable(
    time(
      "When the pod must be deleted: after its grace period and the release margin. Set when it is accepted or the pod is found terminating.",
    ),
  ),
  stopsContainers: optional(flag("Accepted by the container runtime: the pod itself stays.")),
  isOverdue: optional(flag("The outcome `overdue` is recorded.")),
});

const conditionFields = {
  plugin: text("The plugin that reports it: its owner."),
  target: oneOf(["node", "customNodeResource"]),
  name: text(),
  effects: list(text()),
  since: time(),
  cause: optional(text('The values when it was last met: "disk 95 > threshold 90".')),
};

export const storedCondition = object({
  ...conditionFields,
  lastSeen: time("When the plugin last reported it as met."),
});

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

export const state = object({
  version: integer(),
  at: nullable(
    time("When it was computed; null before the first round. Its other times refer to this clock."),
  ),
  boot: nullable(
    object({ id: text(), uptimeMs: number() }, "The machine's boot at that time; null if unknown."),
  ),
  thresholds: list(
    object({
      plugin: text(),
      scope: text(),
      metType: oneOf(["soft", "hard"]),
      since: time("Since when it has been met without interruption."),
      reportedAt: time("When the plugin last reported this scope as met."),
      lastSeen: time("When the plugin was last registered."),
    }),
  ),
  conditions: list(storedCondition),
  queue: list(object({ ...reference, since: time() }), "Pods selected beyond the burst of their round."),
  pending: list(pending, "Victims of earlier rounds whose eviction has not ended."),
  interrupted: list(
    pending,
    "Evictions decided before a restart of the agent that are not known to have been accepted.",
  ),
  recent: list(
    object({
      uid: text(),
      namespace: text(),
      ownerUid: nullable(text()),
      plugin: text(),
      scope: text(),
      others,
      at: time(),
      releasedAt: nullable(time("When the pod was deleted or its deadline passed.")),
    }),
    "Evictions that count for limits and cooldown: those that were sent, or may have been.",
  ),
  paused: list(
    object({ uid: text(), until: time(), reason: text(), budget }),
    "Pods whose eviction failed. They are not retried before `until`, and for some time after that only if no other pod can be evicted.",
  ),
  unrecorded: list(outcome, "Known when the agent stopped, and not recorded by a round yet."),
  unusable: list(
    object({
      plugin: text(),
      scope: optional(text("Absent in states of earlier versions.")),
      rounds: integer(),
    }),
    "The number of consecutive rounds in which a plugin with a hard threshold named only pods that can't be evicted.",
  ),
  unserved: list(
    object({ plugin: text(), since: time() }),
    "Plugins with a confirmed hard threshold for which no pod may be selected.",
  ),
});
