import { reference } from "./eviction-pod.ts";
import * as s from "./schema.ts";

// State that one eviction round carries over to the next.

export const kind = s.oneOf(
  ["soft", "forced"],
  "`forced`: must be evicted. `soft`: at most one pod per round.",
);
export const graceSeconds = s.nullable(s.seconds("Seconds; null for the pod's own."));
export const askSource = s.oneOf(
  ["threshold", "evictPods"],
  "Whether the plugin requested the pod by its threshold (GetTopEvictionPods) or by name (GetEvictPods).",
);

const outcomeResult = s.oneOf(
  ["terminated", "superseded", "unknown", "overdue", "failed", "withdrawn"],
  "`terminated`: a request of the agent was accepted, and the pod was then deleted, or its containers were stopped. " +
    "`superseded`: the pod ended before a request of the agent was accepted. `unknown`: the pod ended after a request " +
    "was sent, and whether that was accepted is not recorded. `overdue`: accepted, and still terminating after its " +
    "deadline; another outcome follows. `failed`: given up, and not tried again for a while. `withdrawn`: cancelled. " +
    "With `sent` or `sentBefore` and without `acceptedAt`, no response to a request of either arrived: whether the pod " +
    "was evicted is not known.",
);

const sent = s.optional(
  s.flag("Whether the API server or the runtime accepted the eviction or may have accepted it."),
);
const acceptedAt = s.optional(s.time("When it was accepted; absent if it was not."));

/**
 * For an eviction of a pod that was selected before: whether an earlier eviction failed or was withdrawn after a
 * request was sent.
 */
export const sentBefore = s.optional(
  s.flag(
    "Whether a request of an earlier eviction of the pod was sent, or may have been: it may still be accepted, or have been.",
  ),
);

/** Identifies a selection of a pod. Not moved by steps of the clock, as `since` is. */
const selectedAt = s.optional(
  s.time(
    "Of an eviction: the time of the round that selected the pod, even if that round is not recorded. Absent in older records.",
  ),
);

/** Of an eviction by `containerStop`. */
const stopsContainers = s.optional(s.flag("Sent to the container runtime: the pod itself stays."));

/** How an eviction ended, and what is known of its requests. */
export const end = { result: outcomeResult, message: s.text(), sent, sentBefore, acceptedAt };

export const budget = s.nullable(
  s.object(
    {
      name: s.nullable(s.text('"default/web"; null if the API server did not name it.')),
      currentHealthy: s.nullable(s.number("Null if the API server's message does not contain it.")),
      desiredHealthy: s.nullable(s.number("Null if the API server's message does not contain it.")),
    },
    "The PodDisruptionBudget that refused the eviction, from the API server's response.",
  ),
);

export const outcome = s.named(
  "EvictionOutcome",
  s.object(
    {
      uid: s.text(),
      namespace: s.optional(s.text("Of the pod.")),
      name: s.optional(s.text()),
      result: outcomeResult,
      sent,
      sentBefore,
      selectedAt,
      acceptedAt,
      stopsContainers,
      endedAt: s.optional(s.time("Absent if unknown.")),
      message: s.text('"429: PodDisruptionBudget default/web allows no disruption now"'),
      budget: s.optional(budget),
    },
    "How an eviction ended.",
  ),
);

export const pressure = s.object(
  { plugin: s.text(), scope: s.text(), source: askSource },
  "The origin of requests: a plugin's threshold with its scope, or requests of the plugin by name.",
);
const others = s.optional(
  s.list(pressure, "Other pressures that requested the pod and wait for its deletion."),
);

export const pending = s.object({
  ...reference,
  plugin: s.text(),
  scope: s.text(),
  kind,
  source: askSource,
  reason: s.text(),
  others,
  gracePeriodSeconds: graceSeconds,
  sentBefore,
  since: s.time("When it was decided."),
  selectedAt,
  sendingAt: s.nullable(s.time("When its first request was about to be sent; null if none was.")),
  isSettled: s.optional(
    s.flag(
      "Whether nothing of it is sent again: it was withdrawn, or the agent was restarted after the decision.",
    ),
  ),
  acceptedAt: s.nullable(s.time("When the API server or the container runtime accepted it.")),
  deadline: s.nullable(
    s.time(
      "When the pod must be deleted: after its grace period and the release margin. Set when it is accepted or the pod is found terminating.",
    ),
  ),
  stopsContainers,
  isOverdue: s.optional(s.flag("The outcome `overdue` is recorded.")),
});

const conditionFields = {
  plugin: s.text("The plugin that reports it: its owner."),
  target: s.oneOf(["node", "customNodeResource"]),
  name: s.text(),
  effects: s.list(s.text()),
  since: s.time(),
  cause: s.optional(s.text('The values when it was last met: "disk 95 > threshold 90".')),
};

export const storedCondition = s.object({
  ...conditionFields,
  lastSeen: s.time("When the plugin last reported it as met."),
});

export const explainedCondition = s.named(
  "Condition",
  s.object({
    ...conditionFields,
    taints: s.list(s.text('"nodekeeper.dev/DiskHot:NoSchedule"')),
    lastMet: s.time("When the plugin last reported it."),
    isMet: s.flag("Whether the plugin reported it in the last round."),
    until: s.nullable(s.time("When it is cleared unless it is reported again; null while it is met.")),
  }),
);

export const state = s.object({
  version: s.integer(),
  at: s.nullable(
    s.time("When it was computed; null before the first round. Its other times refer to this clock."),
  ),
  boot: s.nullable(
    s.object({ id: s.text(), uptimeMs: s.number() }, "The machine's boot at that time; null if unknown."),
  ),
  thresholds: s.list(
    s.object({
      plugin: s.text(),
      scope: s.text(),
      metType: s.oneOf(["soft", "hard"]),
      since: s.time("Since when it has been met without interruption."),
      reportedAt: s.time("When the plugin last reported this scope as met."),
      lastSeen: s.time("When the plugin was last registered."),
    }),
  ),
  conditions: s.list(storedCondition),
  queue: s.list(
    s.object({ ...reference, since: s.time() }),
    "Pods selected beyond the burst of their round.",
  ),
  pending: s.list(pending, "Victims of earlier rounds whose eviction has not ended."),
  interrupted: s.list(
    pending,
    "Evictions decided before a restart of the agent that are not known to have been accepted.",
  ),
  recent: s.list(
    s.object({
      uid: s.text(),
      namespace: s.text(),
      ownerUid: s.nullable(s.text()),
      plugin: s.text(),
      scope: s.text(),
      others,
      at: s.time("When it was accepted; when it was decided if that is not known."),
      releasedAt: s.nullable(s.time("When the pod was deleted or its deadline passed.")),
    }),
    "Evictions that were sent, or may have been: those that count for limits and cooldown.",
  ),
  sentBefore: s.optional(
    s.list(
      s.object({ uid: s.text() }),
      "Pods on the node that a request of an earlier eviction may still evict: see `Victim`. Absent in older records.",
    ),
  ),
  paused: s.list(
    s.object({ uid: s.text(), until: s.time(), reason: s.text(), budget }),
    "Pods whose eviction failed. They are not retried before `until`, and for some time after that only if no other pod can be evicted.",
  ),
  unrecorded: s.list(outcome, "Known when the agent stopped, and not recorded by a round yet."),
  unusable: s.list(
    s.object({
      plugin: s.text(),
      scope: s.text(),
      rounds: s.integer(),
    }),
    "The number of consecutive rounds in which a plugin with a hard threshold named only pods that can't be evicted.",
  ),
  unserved: s.list(
    s.object({ plugin: s.text(), since: s.time() }),
    "Plugins with a confirmed hard threshold for which no pod may be selected.",
  ),
});
