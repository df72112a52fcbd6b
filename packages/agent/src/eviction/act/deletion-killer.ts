import type { KubeClient } from "@nodekeeper/core/kube";
import { resultOfError } from "./api-refusal.ts";
import type { Killer, KillRequest, KillResult } from "./killer.ts";
import { podResource } from "./pod-resource.ts";

/** Evicts by deleting the pod; PodDisruptionBudgets do not apply. */
export class DeletionKiller implements Killer {
  readonly name = "deletion";
  readonly #client: Pick<KubeClient, "delete">;

  constructor(client: Pick<KubeClient, "delete">) {
    this.#client = client;
  }

  async kill({ pod, gracePeriodSeconds }: KillRequest, signal: AbortSignal): Promise<KillResult> {
    const { name, namespace, uid } = pod;
    try {
      await this.#client.delete(podResource, name, {
        namespace,
        preconditions: { uid },
        ...(gracePeriodSeconds === null ? {} : { gracePeriodSeconds }),
        signal,
      });
      return { kind: "accepted", message: "DELETE: accepted" };
    } catch (error) {
      signal.throwIfAborted();
      return resultOfError(error, pod, { verb: "delete", resource: "pods" });
    }
  }
}
