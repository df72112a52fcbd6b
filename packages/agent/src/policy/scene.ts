import type { PodReference } from "@nodekeeper/api/decide";
import { Pod } from "@nodekeeper/core/gen/k8s/core/v1/api.ts";
import type { ObservedPod, PodDetails } from "../eviction/index.ts";
import type { PodUsage, podFields, ValuesOf } from "./fields.ts";
import type { NodeSnapshot } from "./node-snapshot.ts";

/** A node and its pods at one point in time, for trying policies. */
export interface Scene {
  /** Milliseconds since the epoch. */
  at: number;
  node: NodeSnapshot;
  /** Candidates for eviction. */
  pods: readonly ObservedPod[];
  /** Pods that are not candidates. */
  others: readonly { pod: PodReference; why: string }[];
  /** Usage by pod UID. */
  usages: ReadonlyMap<string, PodUsage>;
}

/** Requests of a pod, in CPUs and bytes. */
export type SceneRequests = ValuesOf<(typeof podFields)["requests"]>;

/** Returns the details of a pod of which only the requests are known. */
export function detailsWith(requests: SceneRequests): PodDetails {
  const amounts = Object.entries(requests)
    .filter(([, amount]) => amount !== undefined)
    .map(([name, amount]) => [
      name === "ephemeralStorage" ? "ephemeral-storage" : name,
      { string: String(amount) },
    ]);
  return Pod.fromPartial({
    spec: { containers: [{ name: "all", resources: { requests: Object.fromEntries(amounts) } }] },
  });
}
