import type { EvictionPod } from "@nodekeeper/api/decide";
import { type Container, Pod } from "@nodekeeper/core/gen/k8s/core/v1/api.ts";
import type { KubeObject } from "@nodekeeper/core/kube";
import { podMessageOf } from "./pod-message.ts";
import { type QosLevelReader, qosLevelReader } from "./qos-level.ts";
import { readPod } from "./read-pod.ts";

/** The fields of a pod that only in-tree plugins read, with the structure of core v1's Pod. */
export interface PodDetails {
  metadata?: { annotations: Readonly<Record<string, string>> } | undefined;
  spec?:
    | {
        containers: readonly ContainerDetails[];
        initContainers: readonly ContainerDetails[];
        overhead: NonNullable<Pod["spec"]>["overhead"];
        resources?: NonNullable<Pod["spec"]>["resources"];
      }
    | undefined;
}

type ContainerDetails = Pick<Container, "name" | "resources" | "restartPolicy">;

/** A pod for decisions and in-tree plugins. */
export interface ObservedPod {
  readonly pod: EvictionPod;
  readonly details: PodDetails;
}

/** A pod that can also be sent to plugins behind sockets. */
export interface EncodablePod extends ObservedPod {
  /** Returns the encoded core v1 Pod with the fields of the stripped message (proto/k8s/core/v1). Encoded once. */
  encoded(): Uint8Array;
}

const katalystQosLevel = qosLevelReader();

/**
 * Reads a pod from the API server's JSON. Throws `invalid` for a pod without UID or name.
 * @param qosLevelOf default: katalyst's annotation only
 */
export function observeJson(object: KubeObject, qosLevelOf: QosLevelReader = katalystQosLevel): EncodablePod {
  let message: Pod | undefined = podMessageOf(object);
  let bytes: Uint8Array | undefined;
  return {
    pod: readPod(message, qosLevelOf),
    details: detailsOf(message),
    encoded: () => {
      bytes ??= Pod.encode(message!).finish();
      // The bytes take a quarter of the message's memory.
      message = undefined;
      return bytes;
    },
  };
}

function detailsOf({ metadata, spec }: Pod): PodDetails {
  return {
    metadata: { annotations: metadata?.annotations ?? {} },
    spec: spec && {
      containers: spec.containers.map(containerDetails),
      initContainers: spec.initContainers.map(containerDetails),
      overhead: spec.overhead,
      resources: spec.resources,
    },
  };
}

function containerDetails({ name, resources, restartPolicy }: Container): ContainerDetails {
  return { name, resources, restartPolicy };
}
