import { metThresholdFields, refusalCounts } from "./eviction-decision.ts";
import { qosClass, qosLevel, reference } from "./eviction-pod.ts";
import { budget, kind } from "./eviction-state.ts";
import { integer, list, named, nullable, object, oneOf, text, time } from "./schema.ts";

const use = {
  limit: nullable(integer("Null: no limit.")),
  used: integer("Evictions within the window."),
  freeAt: nullable(time("When one more is allowed; null if it is allowed now, and for a limit of 0.")),
};

const pending = object({
  ...reference,
  plugin: text(),
  scope: text(),
  kind,
  reason: text(),
  since: time("When it was decided."),
  stage: oneOf(
    ["sending", "terminating", "interrupted"],
    "`sending`: not accepted yet; `interrupted`: decided before a restart of the agent and not known to have been sent.",
  ),
  sendingAt: nullable(time("When its first request was about to be sent; null if none was.")),
  acceptedAt: nullable(time()),
  deadline: nullable(
    time("When the pod must be deleted; null before it is accepted or the pod is found terminating."),
  ),
});

export const evictionBudgets = named(
  "EvictionBudgets",
  object(
    {
      at: nullable(time("The last round.")),
      burst: nullable(integer("Most evictions started in a round; null for no limit.")),
      windowMs: integer("The limits count evictions within this time."),
      node: object(use),
      namespaces: list(
        object({ namespace: text(), ...use }),
        "Those with evictions in the window; at most 200.",
      ),
      owners: list(
        object({
          namespace: text(),
          owner: object({
            kind: text("Empty if it is no longer known."),
            name: text(),
            uid: text(),
          }),
          ...use,
        }),
        "Owners of pods with evictions in the window; at most 200.",
      ),
      paused: list(
        object({ ...reference, until: time(), reason: text(), budget }),
        "Pods whose eviction failed and is not retried yet; `budget` is the PodDisruptionBudget that refused it.",
      ),
      queued: list(object({ ...reference, since: time() }), "Selected beyond the burst of their round."),
      limited: list(
        object({
          ...reference,
          plugin: text("The plugin that requested it."),
          reason: oneOf(["nodeLimit", "namespaceLimit", "ownerLimit"]),
          until: nullable(time("When one more eviction is allowed; null for a limit of 0.")),
        }),
        "Requested in the last round, and refused by a limit that is still reached; at most 200.",
      ),
      pending: list(pending, "Evictions that have not ended."),
      thresholds: list(object(metThresholdFields), "Thresholds that were met in the last round."),
    },
    "What limits evictions now, and what is paused, queued or in progress.",
  ),
);

export const candidateCounts = named(
  "CandidateCounts",
  object(
    {
      pods: integer(),
      mix: list(object({ qosLevel, qosClass, pods: integer() }), "Combinations that occur."),
      candidates: integer("Pods that plugins may request: eligible and ineligible ones."),
      eligible: integer("Candidates that can be evicted now."),
      ineligible: refusalCounts,
      excluded: refusalCounts,
    },
    "The pods of the node by QoS, and how many of them can be evicted now: `ineligible` are candidates that can't be " +
      "for a while, `excluded` pods are never evicted.",
  ),
);
