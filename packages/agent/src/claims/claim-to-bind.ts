import { type KubeObject, recordOf, recordsOf, textOf } from "@nodekeeper/core/kube";
import { type Allocation, allocationOf, type ClaimPod } from "./allocation.ts";
import type { ClaimReference } from "./claim-reader.ts";

/** An allocated claim with devices of one driver that have binding conditions. */
export interface ClaimToBind extends ClaimReference, Allocation {
  /** Wall milliseconds; 0 if it is not known. */
  allocatedAt: number;
}

/**
 * Returns a claim for a driver. Undefined if it has no device with binding conditions that this node can use.
 * @param known pods whose service accounts are known, by UID
 */
export function claimToBind(
  claim: KubeObject,
  driver: string,
  known: ReadonlyMap<string, ClaimPod>,
  nodeName: string,
): ClaimToBind | undefined {
  if (!bindingDrivers(claim, nodeName).includes(driver)) return undefined;
  const { pods, devices, details } = allocationOf(claim, driver);
  const { name = "", namespace = "", uid = "" } = claim.metadata;
  const { allocationTimestamp } = recordOf(recordOf(claim.status).allocation);
  return {
    namespace,
    name,
    uid,
    pods: pods.map((pod) => ({ ...pod, ...known.get(pod.uid) })),
    devices: devices.filter(({ bindingConditions }) => bindingConditions),
    details,
    allocatedAt: Date.parse(textOf(allocationTimestamp)) || 0,
  };
}

/** Returns the UIDs of pods that a claim is reserved for. */
export function reservedPods(claim: KubeObject | undefined): string[] {
  return recordsOf(recordOf(claim?.status).reservedFor).map(({ uid }) => textOf(uid));
}

/**
 * Returns the drivers of a claim's allocated devices with binding conditions. Empty if the claim is allocated for other
 * nodes.
 */
export function bindingDrivers(claim: KubeObject | undefined, nodeName: string): string[] {
  const { devices, nodeSelector } = recordOf(recordOf(claim?.status).allocation);
  if (isOfOtherNodes(recordOf(nodeSelector), nodeName)) return [];
  return recordsOf(recordOf(devices).results)
    .filter(({ bindingConditions }) => Array.isArray(bindingConditions) && bindingConditions.length > 0)
    .map(({ driver }) => textOf(driver));
}

// The node selector of an allocation names the node if the device is local or sets bindsToNode. It is another
// node's if the scheduler has meanwhile nominated that node for the pod.
function isOfOtherNodes({ nodeSelectorTerms }: Record<string, unknown>, nodeName: string): boolean {
  const terms = recordsOf(nodeSelectorTerms);
  const isOther = ({ matchFields }: Record<string, unknown>) =>
    recordsOf(matchFields).some(
      ({ key, operator, values }) =>
        key === "metadata.name" && operator === "In" && Array.isArray(values) && !values.includes(nodeName),
    );
  return terms.length > 0 && terms.every(isOther);
}

/** Identifies an allocation: a claim that is deallocated and allocated again has another one. */
export function allocationKey({ uid, allocatedAt, devices }: ClaimToBind): string {
  return JSON.stringify([
    uid,
    allocatedAt,
    devices.map(({ pool, device, shareId }) => [pool, device, shareId]),
  ]);
}
