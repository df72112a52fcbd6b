import type { KubeClient } from "@nodekeeper/core/kube";
import { resultOfError } from "./api-refusal.ts";
import type { Killer, KillRequest, KillResult } from "./killer.ts";
import { podResource } from "./pod-resource.ts";

/**
 * Evicts by `POST pods/eviction` (policy/v1, Kubernetes 1.22 and later), which honors PodDisruptionBudgets:
 * https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/
 */
export class EvictionApiKiller implements Killer {
  readonly name = "evictionApi";
  readonly #client: Pick<KubeClient, "create">;

  constructor(client: Pick<KubeClient, "create">) {
    this.#client = client;
  }

  async kill({ pod, gracePeriodSeconds }: KillRequest, signal: AbortSignal): Promise<KillResult> {
    const { name, namespace, uid } = pod;
    const eviction = {
      apiVersion: "policy/v1",
      kind: "Eviction",
      metadata: { name, namespace },
      deleteOptions: {
        preconditions: { uid },
        ...(gracePeriodSeconds === null ? {} : { gracePeriodSeconds }),
      },
    };
    try {
      await this.#client.create(podResource, eviction, { subresource: "eviction", signal });
      return { kind: "accepted", message: "POST eviction: accepted" };
    } catch (error) {
      signal.throwIfAborted();
      return resultOfError(error, pod, { verb: "create", resource: "pods/eviction" });
    }
  }
}
