import type { PodReference } from "@nodekeeper/api/decide";
import { Pod } from "@nodekeeper/core/gen/k8s/core/v1/api.ts";
import { NodekeeperError } from "@nodekeeper/core/lib";
import type { ObservedPod } from "../eviction/index.ts";
import type { WholePods } from "../pod-usage/index.ts";
import type { NodeSnapshot } from "./node-snapshot.ts";
import type { PodUsage } from "./pod-variable.ts";

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
  wholePods: Pick<WholePods, "of">;
}

/** Requests of a pod, in CPUs and bytes. */
export interface SceneRequests {
  cpu?: number | undefined;
  memory?: number | undefined;
  ephemeralStorage?: number | undefined;
}

/** Pods whose only known field is their requests, by UID. */
export class ScenePods {
  readonly #requests: ReadonlyMap<string, SceneRequests>;

  constructor(requests: ReadonlyMap<string, SceneRequests>) {
    this.#requests = requests;
  }

  /** Throws `notFound` if no file contains the pod's requests. */
  of({ pod }: ObservedPod): Pod {
    const requests = this.#requests.get(pod.uid);
    if (!requests) throw new NodekeeperError("notFound", "no file has them");
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
}
