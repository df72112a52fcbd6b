import { isRecord, type KubeObject } from "@nodekeeper/core/kube";
import type { JsonPod } from "./pods.ts";

/** A device allocated to a claim. */
export interface HeldDevice {
  driver: string;
  pool: string;
  device: string;
  /** Of a device that is allocated to several claims at once. */
  shareID?: string;
}

const REQUEST = "devices";

/** Returns the name of a pod's claim for a name in its `spec.resourceClaims`. */
export function claimName({ metadata }: JsonPod, name: string): string {
  return `${metadata.name}-${name}`;
}

/** Returns a ResourceClaim that is allocated these devices and reserved for the pod. */
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

/** Returns the devices allocated to a claim. Empty if it is not allocated. */
export function heldDevices({ status }: KubeObject): HeldDevice[] {
  const allocation = isRecord(status) ? status.allocation : undefined;
  const devices =
    isRecord(allocation) && isRecord(allocation.devices) ? allocation.devices.results : undefined;
  return (Array.isArray(devices) ? devices : [])
    .filter(isRecord)
    .map(({ driver, pool, device, shareID }) => ({
      driver: String(driver),
      pool: String(pool),
      device: String(device),
      ...(typeof shareID === "string" ? { shareID } : {}),
    }));
}

/** Returns whether a claim was created for this pod, rather than for another pod of the same name. */
export function isOf({ metadata }: KubeObject, pod: JsonPod): boolean {
  return (metadata.ownerReferences ?? []).some(({ uid }) => uid === pod.metadata.uid);
}
