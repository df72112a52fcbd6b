import { isRecord, type KubeObject } from "@nodekeeper/core/kube";
import type { JsonPod } from "./pods.ts";

/** A device of a claim's allocation. */
export interface HeldDevice {
  driver: string;
  pool: string;
  device: string;
}

const REQUEST = "devices";

/** The name of a pod's claim, by the name in its `spec.resourceClaims`. */
export function claimName({ metadata }: JsonPod, name: string): string {
  return `${metadata.name}-${name}`;
}

/** A ResourceClaim that is allocated these devices and reserved for a pod. */
export function claimFor(pod: JsonPod, name: string, devices: readonly HeldDevice[]): KubeObject {
  const { name: podName = "", namespace = "", uid = "" } = pod.metadata;
  return {
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceClaim",
    metadata: {
      name: claimName(pod, name),
      namespace,
      ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: podName, uid, controller: true }],
    },
    spec: {
      devices: {
        requests: [
          { name: REQUEST, exactly: { deviceClassName: devices[0]?.driver, count: devices.length } },
        ],
      },
    },
    status: {
      allocation: { devices: { results: devices.map((device) => ({ request: REQUEST, ...device })) } },
      reservedFor: [{ resource: "pods", name: podName, uid }],
    },
  };
}

/** The devices that a claim is allocated; none where it is not. */
export function heldDevices({ status }: KubeObject): HeldDevice[] {
  const allocation = isRecord(status) ? status.allocation : undefined;
  const devices =
    isRecord(allocation) && isRecord(allocation.devices) ? allocation.devices.results : undefined;
  return (Array.isArray(devices) ? devices : []).filter(isRecord).map(({ driver, pool, device }) => ({
    driver: String(driver),
    pool: String(pool),
    device: String(device),
  }));
}

/** Whether a claim was created for a pod: this one, and not another of its name. */
export function isOf({ metadata }: KubeObject, pod: JsonPod): boolean {
  return (metadata.ownerReferences ?? []).some(({ uid }) => uid === pod.metadata.uid);
}
