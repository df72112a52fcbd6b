import { isUncertain, type OutcomeResult, outcomeResults } from "../decide/index.ts";
import type { StoredRow } from "./read-record.ts";

/** An eviction, from its exported decisions. Times are milliseconds since the epoch. */
export interface ArchivedEviction {
  /** When the pod was selected. */
  at: number;
  /** Empty if its agents do not export `k8s.cluster.name`. */
  cluster: string;
  node: string;
  uid: string;
  namespace: string;
  name: string;
  /** "Deployment/web": the pod's controller, or that of its ReplicaSet. Empty if it has none. */
  owner: string;
  /** Empty with scope and reason if the selection is not archived. */
  plugin: string;
  scope: string;
  reason: string;
  /** How it ended, or that it is overdue. Null if no outcome is archived. */
  outcome: ArchivedOutcome | null;
}

/** As much of an `EvictionOutcome` as is read. */
export interface ArchivedOutcome {
  result: OutcomeResult;
  message: string;
  sent?: boolean;
  sentBefore?: boolean;
  acceptedAt?: number;
}

/** What is read of the body of a decision, by the name that `unpack_json` gives it. */
export const decisionFields = [
  ...["at", "victim.plugin", "victim.scope", "victim.reason", "pod.labels.pod-template-hash"],
  ...["outcome.result", "outcome.message", "outcome.selectedAt", "outcome.sent", "outcome.sentBefore"],
  "outcome.acceptedAt",
] as const;

/** Attributes of a decision that are read. */
export const decisionAttributes = [
  ...["nodekeeper.record.id", "k8s.node.name", "k8s.pod.uid", "k8s.namespace.name", "k8s.pod.name"],
  ...["nodekeeper.pod.owner", "k8s.cluster.name"],
] as const;

type Fields = StoredRow["fields"];

/**
 * Returns the evictions whose pods were selected at or after `since` (milliseconds since the epoch), oldest first.
 * @param rows have `decisionFields` and `decisionAttributes`, in any order; duplicates are ignored
 */
export function evictionsOf(rows: readonly Fields[], since: number): ArchivedEviction[] {
  const distinct = [...new Map(rows.map((row) => [row["nodekeeper.record.id"], row])).values()];
  const found = new Map<string, ArchivedEviction>();
  for (const row of distinct) {
    const plugin = row["victim.plugin"];
    if (plugin === undefined || plugin === "") continue;
    const at = Number(row.at);
    const { "victim.scope": scope = "", "victim.reason": reason = "" } = row;
    found.set(keyOf(row, at), { ...evictionIn(row, at), plugin, scope, reason });
  }
  for (const row of distinct) addOutcome(found, row);
  return [...found.values()].filter(({ at }) => at >= since).sort((a, b) => a.at - b.at);
}

function addOutcome(found: Map<string, ArchivedEviction>, row: Fields): void {
  const { "outcome.result": result = "", "outcome.message": message = "" } = row;
  const { "outcome.sent": sent, "outcome.sentBefore": sentBefore, "outcome.acceptedAt": acceptedAt } = row;
  if (!isResult(result)) return;
  const selectedAt = Number(row["outcome.selectedAt"] || row.at);
  const key = keyOf(row, selectedAt);
  const eviction = found.get(key) ?? evictionIn(row, selectedAt);
  found.set(key, eviction);
  const before = eviction.outcome ? outcomeResults.indexOf(eviction.outcome.result) : -1;
  if (outcomeResults.indexOf(result) < before) return;
  eviction.outcome = {
    ...{ result, message },
    ...(sent ? { sent: sent === "true" } : {}),
    ...(sentBefore ? { sentBefore: sentBefore === "true" } : {}),
    ...(acceptedAt ? { acceptedAt: Number(acceptedAt) } : {}),
  };
}

function isResult(text: string): text is OutcomeResult {
  return outcomeResults.some((result) => result === text);
}

function keyOf(row: Fields, selectedAt: number): string {
  return `${row["k8s.pod.uid"]} ${selectedAt}`;
}

function evictionIn(row: Fields, at: number): ArchivedEviction {
  return {
    at,
    cluster: row["k8s.cluster.name"] ?? "",
    node: row["k8s.node.name"] ?? "",
    uid: row["k8s.pod.uid"] ?? "",
    namespace: row["k8s.namespace.name"] ?? "",
    name: row["k8s.pod.name"] ?? "",
    owner: workloadOf(row["nodekeeper.pod.owner"] ?? "", row["pod.labels.pod-template-hash"]),
    ...{ plugin: "", scope: "", reason: "", outcome: null },
  };
}

/** Returns the Deployment of a ReplicaSet by its hash in the pod's labels; any other controller as it is. */
function workloadOf(owner: string, hash: string | undefined): string {
  const [, name] = /^ReplicaSet\/(.+)$/.exec(owner) ?? [];
  const suffix = `-${hash}`;
  return name !== undefined && hash && name.endsWith(suffix)
    ? `Deployment/${name.slice(0, -suffix.length)}`
    : owner;
}

/** Whether the agent evicted the pod. `unknown` also if no end is archived, or a request may have been accepted. */
export function isEvicted({ outcome }: ArchivedEviction): "evicted" | "notEvicted" | "unknown" {
  if (outcome === null || ["overdue", "unknown"].includes(outcome.result) || isUncertain(outcome))
    return "unknown";
  return outcome.result === "terminated" && outcome.sent !== false ? "evicted" : "notEvicted";
}

const keys = {
  owner: ({ namespace, owner }: ArchivedEviction) => (owner === "" ? "-" : `${namespace}/${owner}`),
  namespace: ({ namespace }: ArchivedEviction) => namespace,
  plugin: ({ plugin }: ArchivedEviction) => plugin || "-",
  scope: ({ scope }: ArchivedEviction) => scope || "-",
  node: ({ node }: ArchivedEviction) => node,
  cluster: ({ cluster }: ArchivedEviction) => cluster || "-",
} as const;

/** By what evictions can be counted. */
export type EvictionKey = keyof typeof keys;
export const evictionKeys = Object.keys(keys) as EvictionKey[];

/** Evictions with the same values of the keys. */
export interface EvictionGroup {
  values: string[];
  evicted: number;
  notEvicted: number;
  /** Also those without an archived end. */
  unknown: number;
}

/** Counts evictions by the values of keys, the most frequent first. */
export function countEvictions(
  evictions: readonly ArchivedEviction[],
  by: readonly EvictionKey[],
): EvictionGroup[] {
  const groups = new Map<string, EvictionGroup>();
  for (const eviction of evictions) {
    const values = by.map((key) => keys[key](eviction));
    const text = JSON.stringify(values);
    const group = groups.get(text) ?? { values, evicted: 0, notEvicted: 0, unknown: 0 };
    group[isEvicted(eviction)]++;
    groups.set(text, group);
  }
  const total = ({ evicted, notEvicted, unknown }: EvictionGroup) => evicted + notEvicted + unknown;
  return [...groups.values()].sort(
    (a, b) => b.evicted - a.evicted || total(b) - total(a) || (a.values.join() < b.values.join() ? -1 : 1),
  );
}
