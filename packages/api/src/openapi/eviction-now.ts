import * as s from "../schemas/index.ts";
import { budget, kind, qosClass, qosLevel, reference, strippedPod } from "../schemas/index.ts";
import { metThresholdFields, refusalCounts } from "./eviction-decision.ts";

const use = {
  limit: s.nullable(s.integer("Null: no limit.")),
  used: s.integer("Evictions within the window."),
  freeAt: s.nullable(s.time("When one more is allowed; null if it is allowed now, and for a limit of 0.")),
};

const pending = s.object({
  ...reference,
  plugin: s.text(),
  scope: s.text(),
  kind,
  reason: s.text(),
  since: s.time("When it was decided."),
  stage: s.oneOf(
    ["sending", "terminating", "stopping", "interrupted"],
    "`sending`: not accepted yet; `stopping`: its containers are stopped, the pod stays; `interrupted`: decided before a restart of the agent and not known to have been sent.",
  ),
  sendingAt: s.nullable(s.time("When its first request was about to be sent; null if none was.")),
  acceptedAt: s.nullable(s.time()),
  deadline: s.nullable(
    s.time("When the pod must be deleted; null before it is accepted or the pod is found terminating."),
  ),
});

export const evictionBudgets = s.named(
  "EvictionBudgets",
  s.object(
    {
      at: s.nullable(s.time("The last round since the agent's start; null before the first.")),
      burst: s.nullable(s.integer("Most evictions started in a round; null for no limit.")),
      windowMs: s.integer("The limits count evictions within this time."),
      node: s.object(use),
      namespaces: s.list(
        s.object({ namespace: s.text(), ...use }),
        "Those with evictions in the window; at most 200.",
      ),
      owners: s.list(
        s.object({
          namespace: s.text(),
          owner: s.object({
            kind: s.text("Empty if it is no longer known."),
            name: s.text(),
            uid: s.text(),
          }),
          ...use,
        }),
        "Owners of pods with evictions in the window; at most 200.",
      ),
      paused: s.list(
        s.object({ ...reference, until: s.time(), reason: s.text(), budget }),
        "Pods whose eviction failed and is not retried yet; `budget` is the PodDisruptionBudget that refused it.",
      ),
      queued: s.list(
        s.object({ ...reference, since: s.time() }),
        "Selected beyond the burst of their round.",
      ),
      limited: s.list(
        s.object({
          ...reference,
          plugin: s.text("The plugin that requested it."),
          reason: s.oneOf(["nodeLimit", "namespaceLimit", "ownerLimit"]),
          until: s.nullable(s.time("When one more eviction is allowed; null for a limit of 0.")),
        }),
        "Requested in the last round, and refused by a limit that is still reached; at most 200.",
      ),
      pending: s.list(pending, "Evictions that have not ended."),
      thresholds: s.list(s.object(metThresholdFields), "Thresholds that were met in the last round."),
    },
    "What limits evictions now, and what is paused, queued or in progress.",
  ),
);

export const candidateCounts = s.named(
  "CandidateCounts",
  s.object(
    {
      pods: s.integer(),
      mix: s.list(s.object({ qosLevel, qosClass, pods: s.integer() }), "Combinations that occur."),
      candidates: s.integer("Pods that plugins may request: eligible and ineligible ones."),
      eligible: s.integer("Candidates that can be evicted now."),
      ineligible: refusalCounts,
      excluded: refusalCounts,
    },
    "The pods of the node by QoS, and how many of them can be evicted now: `ineligible` are candidates that can't be " +
      "for a while, `excluded` pods are never evicted.",
  ),
);

export const eligiblePods = s.list(
  s.named(
    "EligiblePod",
    s.object({
      pod: strippedPod,
      eviction: s.oneOf(
        ["now", "later", "never"],
        "`later`: it is a candidate that can't be evicted now; `never`: it is not a candidate.",
      ),
      reason: s.optional(s.text("Why it can't be evicted now: a sentence.")),
      until: s.optional(s.time("When the reason ends; absent if unknown.")),
    }),
  ),
  "By namespace and name.",
);
