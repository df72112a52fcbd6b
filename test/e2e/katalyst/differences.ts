import type { RefusalReason } from "@nodekeeper/api/decide";

/** What differs for one pod of a round. */
export interface Difference {
  /** `onlyKatalyst`, `onlyHere`: evicted by one of both. `gracePeriod`: evicted by both, with another grace period. */
  kind: "onlyKatalyst" | "onlyHere" | "gracePeriod";
  /** Why it is not evicted here, by its exclusion, a refused request, or why it was not offered. Undefined if it is evicted. */
  refusal: RefusalReason | undefined;
  /** The hold of a threshold whose plugin would have named it, if there is one. */
  held: string | undefined;
  /** What the plugins that are not in dry run ask for the pod. */
  requests: readonly { kind: "forced" | "soft"; source: "evictPods" | "threshold"; grace: number | null }[];
  /** Whether the QoS level of the pod's annotation does not exist. */
  hasUnknownLevel: boolean;
  /** Whether katalyst selected it too, and it waits there because of the burst. */
  waitsThere: boolean;
  /** Whether the agent evicts the pod that katalyst's own order makes the first of all soft requests. */
  followsOrder: boolean;
  /** The source of the request that the agent's soft victim of the round is based on, if it has one. */
  softSource: "evictPods" | "threshold" | undefined;
  /** Whether katalyst's manager panicked in this round. */
  panicked: boolean;
  /** Grace periods, seconds, there and here; undefined where it is not evicted. */
  there: number | undefined;
  here: number | undefined;
}

/** A difference that is intended, and how it is recognized. */
export interface AcceptedDifference {
  id: string;
  katalyst: string;
  nodekeeper: string;
  why: string;
  /** The version from which katalyst does the same, if there is one. */
  until?: string;
  recognizes(difference: Difference): boolean;
}

const onlyThere =
  (...reasons: readonly RefusalReason[]) =>
  ({ kind, refusal }: Difference) =>
    kind === "onlyKatalyst" && refusal !== undefined && reasons.includes(refusal);

/**
 * Everything that may differ, the first that recognizes a difference explains it. The end-to-end suite fails for a
 * difference that none recognizes, and for an entry that recognizes none. docs/migrating-from-katalyst.md has them as a table.
 */
export const acceptedDifferences: readonly AcceptedDifference[] = [
  {
    id: "panic",
    katalyst:
      "panics if a pod is requested with a grace period by GetEvictPods and without one by GetTopEvictionPods",
    nodekeeper: "evicts it with its own grace period",
    why: "later releases of katalyst do the same",
    until: "v0.5.37",
    recognizes: ({ kind, panicked }) => panicked && kind === "onlyHere",
  },
  {
    id: "all-target-pods",
    katalyst: "evicts all pods that a plugin names for a hard threshold",
    nodekeeper: "evicts one of them, the lowest-ranked that can be evicted",
    why: "GetTopEvictionPods asks for one pod (topN is 1)",
    recognizes: onlyThere("overTopN"),
  },
  {
    id: "second-request",
    katalyst: "sends a second eviction if a later request has a shorter grace period",
    nodekeeper: "evicts a pod once, and follows it to its end",
    why: "the grace period was granted to the pod, and may be part of its shutdown",
    recognizes: onlyThere("pending"),
  },
  {
    id: "daemon-sets",
    katalyst: "evicts pods of DaemonSets",
    nodekeeper: "protects them, unless `skip.daemonSets` is false",
    why: "their controller recreates them on the same node, so nothing is relieved",
    recognizes: onlyThere("daemonSet"),
  },
  {
    id: "limits",
    katalyst: "has no limit of evictions over time",
    nodekeeper: "bounds the evictions per node, namespace and owner (`limits`)",
    why: "a threshold that never clears must not drain the node",
    recognizes: onlyThere("nodeLimit", "namespaceLimit", "ownerLimit"),
  },
  {
    id: "pending-release",
    katalyst: "selects further pods while an evicted one is still terminating",
    nodekeeper: "waits until the victim of the same threshold is deleted, up to `longestRelease`",
    why: "the pod that terminates may be all that is needed",
    recognizes: ({ kind, refusal, held }) =>
      kind === "onlyKatalyst" && (refusal === "pendingRelease" || held === "pendingRelease"),
  },
  {
    id: "cooldown",
    katalyst: "selects the next pod in the round after a victim is deleted",
    nodekeeper: "waits for `cooldown` (30 s)",
    why: "the signal of the threshold needs time to show what the deletion relieved",
    recognizes: ({ kind, refusal, held }) =>
      kind === "onlyKatalyst" && (refusal === "cooldown" || held === "cooldown"),
  },
  {
    id: "unknown-pods",
    katalyst: "evicts any pod that a plugin names, also by a name that no pod of the node has",
    nodekeeper: "refuses pods that are not on the node",
    why: "a plugin may be wrong about a pod, and a namesake must not be evicted for it",
    recognizes: onlyThere("unknownPod", "nameMismatch", "otherNode"),
  },
  {
    id: "skipped-pods",
    katalyst: "does not offer pods with a skip key to plugins, and evicts them if a plugin names them",
    nodekeeper: "refuses them",
    why: "the operator excluded them from eviction",
    recognizes: onlyThere("skipLabel", "skipAnnotation"),
  },
  {
    id: "ended-pods",
    katalyst: "evicts pods that are already terminating or have finished if a plugin names them",
    nodekeeper: "refuses them",
    why: "their eviction relieves nothing",
    recognizes: onlyThere("terminating", "finished"),
  },
  {
    id: "unknown-level",
    katalyst: "evicts a critical or static pod whose QoS level can't be read, if a plugin names it",
    nodekeeper: "protects it",
    why: "what protects a pod does not depend on its QoS level",
    recognizes: (difference) =>
      difference.hasUnknownLevel && onlyThere("critical", "static", "mirror")(difference),
  },
  {
    id: "negative-grace",
    katalyst: "does not evict a pod for which a negative grace period is requested",
    nodekeeper: "evicts it with its own grace period",
    why: "the request is clear, only its grace period is not",
    recognizes: ({ kind, requests }) =>
      kind === "onlyHere" && requests.some(({ grace }) => grace !== null && grace < 0),
  },
  {
    id: "soft-thresholds",
    katalyst: "selects no pod for a soft threshold",
    nodekeeper: "calls GetTopEvictionPods for it, and the pods it names are soft requests",
    why: "later releases of katalyst do the same",
    until: "v0.5.39",
    recognizes: ({ kind, softSource, refusal }) =>
      softSource === "threshold" &&
      (kind === "onlyHere" || (kind === "onlyKatalyst" && refusal === "notLeastImportant")),
  },
  {
    id: "notification",
    katalyst: "evicts a pod that is annotated to be notified of soft requests",
    nodekeeper: "notifies it",
    why: "later releases of katalyst do the same",
    until: "v0.5.39",
    recognizes: onlyThere("notifyOnly"),
  },
  {
    id: "soft-victim",
    katalyst: "evicts the first of the sorted soft requests, which is the most protected pod",
    nodekeeper: "evicts the last, by the same order",
    why: "later releases of katalyst do the same",
    until: "v0.5.17",
    recognizes: ({ kind, refusal, followsOrder, requests }) =>
      followsOrder &&
      (kind === "onlyHere"
        ? requests.length > 0 && requests.every((request) => request.kind === "soft")
        : kind === "onlyKatalyst" && refusal === "notLeastImportant"),
  },
  {
    id: "burst",
    katalyst: "starts an arbitrary part of the selected pods if they are more than the burst",
    nodekeeper: "starts forced ones before soft ones, each in rank order",
    why: "the pods that matter least are evicted first",
    recognizes: ({ kind, refusal, waitsThere }) =>
      (kind === "onlyKatalyst" && (refusal === "overBurst" || refusal === "notLeastImportant")) ||
      (kind === "onlyHere" && waitsThere),
  },
  {
    id: "shared-grace",
    katalyst: "raises the grace period of all pods of an answer with that of one of them",
    nodekeeper: "determines it for each pod",
    why: "the request was about another pod",
    recognizes: ({ kind, requests, there = 0, here = 0 }) =>
      kind === "gracePeriod" && there > here && requests.some(({ source }) => source === "threshold"),
  },
  {
    id: "grace-bounds",
    katalyst: "uses any grace period that a plugin requests, 0 too",
    nodekeeper: "uses one from `grace.shortest` (10 s) to `grace.longest` (1 h), and the pod's own for 0",
    why: "0 kills the containers at once, and a long one keeps the pressure",
    recognizes: ({ kind, requests }) =>
      kind === "gracePeriod" && requests.some(({ grace }) => grace !== null && (grace < 10 || grace > 3_600)),
  },
  {
    id: "several-grace-periods",
    katalyst: "uses that of the request it happens to read last if several plugins request the pod",
    nodekeeper: "uses the longest of the requests that count",
    why: "a plugin must not shorten what another one grants",
    recognizes: ({ kind, requests }) => kind === "gracePeriod" && requests.length > 1,
  },
];

/** The entry that explains a difference. */
export function explainedBy(difference: Difference): AcceptedDifference | undefined {
  return acceptedDifferences.find(({ recognizes }) => recognizes(difference));
}
