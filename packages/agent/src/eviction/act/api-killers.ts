import { type KubeClient, podResource } from "@nodekeeper/core/kube";
import { type CallRights, resultOfError } from "./api-refusal.ts";
import type { Killer, KillRequest } from "./killer.ts";

/** The options of a deletion: only this pod as it was read, and the grace period if one is requested. */
interface DeleteOptions {
  preconditions: { uid: string; resourceVersion?: string };
  gracePeriodSeconds?: number;
}

/**
 * Returns the killer that evicts by `POST pods/eviction` (policy/v1, Kubernetes 1.22 and later), which honors
 * PodDisruptionBudgets: https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/
 */
export function evictionApiKiller(client: Pick<KubeClient, "create">): Killer {
  return {
    name: "evictionApi",
    kill(request, signal) {
      const { name, namespace } = request.pod;
      const deleteOptions = deleteOptionsOf(request);
      const eviction = {
        apiVersion: "policy/v1",
        kind: "Eviction",
        metadata: { name, namespace },
        deleteOptions,
      };
      return attempt(request, { verb: "create", resource: "pods/eviction" }, signal, async () => {
        await client.create(podResource, eviction, { subresource: "eviction", signal });
        return "POST eviction: accepted";
      });
    },
  };
}

/** Returns the killer that evicts by deleting the pod; PodDisruptionBudgets do not apply. */
export function deletionKiller(client: Pick<KubeClient, "delete">): Killer {
  return {
    name: "deletion",
    kill(request, signal) {
      const { name, namespace } = request.pod;
      return attempt(request, { verb: "delete", resource: "pods" }, signal, async () => {
        await client.delete(podResource, name, { namespace, ...deleteOptionsOf(request), signal });
        return "DELETE: accepted";
      });
    },
  };
}

function deleteOptionsOf({ pod: { uid }, resourceVersion, gracePeriodSeconds }: KillRequest): DeleteOptions {
  return {
    preconditions: { uid, ...(resourceVersion === undefined ? {} : { resourceVersion }) },
    ...(gracePeriodSeconds === null ? {} : { gracePeriodSeconds }),
  };
}

async function attempt(
  { pod, sending }: KillRequest,
  rights: CallRights,
  signal: AbortSignal,
  send: () => Promise<string>,
): ReturnType<Killer["kill"]> {
  signal.throwIfAborted();
  if (!sending()) return { kind: "unsent" };
  try {
    return { kind: "accepted", message: await send() };
  } catch (error) {
    signal.throwIfAborted();
    return resultOfError(error, pod, rights);
  }
}
