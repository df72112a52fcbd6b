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
export const askSource = oneOf(["threshold", "evictPods"]);

export const outcomeResult = oneOf(
  ["terminated", "superseded", "unknown", "overdue", "failed", "withdrawn"],
  "`terminated`: a request of the agent was accepted, and the pod was then deleted, or its containers were stopped. " +
    "`superseded`: the pod ended before a request of the agent was accepted. `unknown`: the pod ended after a request " +
    "was sent, and whether that was accepted is not recorded. `overdue`: accepted, and still terminating after its " +
    "deadline; another outcome follows.",
);

export const budget = nullable(
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
      result: outcomeResult,
      sent: optional(flag()),
      acceptedAt: optional(time("When it was accepted; absent where it was not.")),
      endedAt: optional(time("Absent where that is not known.")),
      message: text(),
      budget: optional(budget),
    },
    "How an eviction ended.",
  ),
);

const pressure = object({ plugin: text(), scope: text(), source: askSource });

export const pending = object({
  ...reference,
  plugin: text(),
  scope: text(),
  kind,
  source: askSource,
  reason: text(),
  others: optional(list(pressure)),
  gracePeriodSeconds: graceSeconds,
  since: time(),
  sendingAt: nullable(time("When its first request was about to be sent; null if none was.")),
  acceptedAt: nullable(time()),
  deadline: nullable(time()),
  stopsContainers: optional(flag("Accepted by the container runtime: the pod itself stays.")),
  isOverdue: optional(flag("The outcome `overdue` is recorded.")),
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

export const state = object({
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
  unrecorded: list(outcome, "Known when the agent stopped, and not recorded by a round yet."),
  unusable: list(object({ plugin: text(), scope: optional(text()), rounds: integer() })),
  unserved: list(object({ plugin: text(), since: time() })),
});
