import { type OwnerName, ownerPattern } from "@nodekeeper/api/archive";
import { timeOf } from "@nodekeeper/api/wording";
import { type PodName, podText } from "../pod-name.ts";
import type { Selection, StoredRows } from "./stored-rows.ts";

/** The pods of a controller. */
export interface OwnedPods {
  namespace: string;
  owner: OwnerName;
}

/** Selects a pod: by name, by UID, or as a pod of a controller. */
export interface PodQuery {
  pod: PodName | OwnedPods;
  /** Only pods of this node. */
  node?: string | undefined;
  /** The pod at this time, milliseconds since the epoch. Default: the one with the last record. */
  at?: number | undefined;
}

/** A pod with a decision about it, or its end, in the archive. Times are milliseconds since the epoch. */
export interface FoundPod {
  uid: string;
  name: string;
  node: string;
  /** The cluster, if its agents export `k8s.cluster.name`. */
  cluster: string;
  lastAt: number;
}

/** Maximum number of pods read; earlier ones are left out. */
export const MOST_PODS = 1_000;
const KEYS = ["k8s.pod.uid", "k8s.pod.name", "k8s.node.name", "k8s.cluster.name"] as const;

/**
 * Returns the pods that match a query: the pod to explain, then the others by their last record, newest first. The pod
 * to explain is the one with the earliest last record at or after `at`; if there is none, the one with the newest record.
 * `isCut`: earlier pods may have been left out.
 */
export async function findPods(
  rows: StoredRows,
  { pod, node, at }: PodQuery,
): Promise<{ pods: FoundPod[]; isCut: boolean }> {
  const by = KEYS.map((key) => `"${key}"`).join(", ");
  const pipe = `stats by (${by}) max(_time) last | sort by (last desc)`;
  const answer = await rows.rows({ ...selectionOf(pod), node, events: ofPods }, pipe, MOST_PODS);
  const pods = answer.map((row) => ({
    uid: row["k8s.pod.uid"] ?? "",
    name: row["k8s.pod.name"] ?? "",
    node: row["k8s.node.name"] ?? "",
    cluster: row["k8s.cluster.name"] ?? "",
    lastAt: Date.parse(row.last ?? ""),
  }));
  // Replicas of the store may know different records of a pod.
  const oldestFirst = pods.filter(({ uid }) => uid !== "").sort((a, b) => a.lastAt - b.lastAt);
  const distinct = [...new Map(oldestFirst.map((one) => [one.uid, one])).values()];
  const meant = at === undefined ? undefined : distinct.find(({ lastAt }) => lastAt >= at);
  const newestFirst = distinct.reverse();
  return {
    pods: meant ? [meant, ...newestFirst.filter((one) => one !== meant)] : newestFirst,
    isCut: answer.length >= MOST_PODS,
  };
}

/** Names of the records of decisions and pod ends. The archive can explain a pod if it has one of either. */
export const ofPods = ["nodekeeper.eviction.decision", "nodekeeper.pod.ended"] as const;

function selectionOf(pod: PodQuery["pod"]): Selection {
  if ("uid" in pod) return { where: { "k8s.pod.uid": pod.uid } };
  const { namespace } = pod;
  if ("owner" in pod)
    return {
      where: { "k8s.namespace.name": namespace },
      matching: { "nodekeeper.pod.owner": ownerPattern(pod.owner) },
    };
  return { where: { "k8s.namespace.name": namespace, "k8s.pod.name": pod.name } };
}

/** "pod default/web at 2026-11-28T03:00:00.000Z", "pod of Deployment/web in namespace default" */
export function queryText({ pod, at }: PodQuery): string {
  const what =
    "owner" in pod
      ? `pod of ${pod.owner.kind}/${pod.owner.name} in namespace ${pod.namespace}`
      : `pod ${podText(pod)}`;
  return at === undefined ? what : `${what} at ${timeOf(at)}`;
}
