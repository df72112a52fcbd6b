import { ClaimNotPreparable } from "@nodekeeper/api/errors";
import { isRecord, type KubeObject, recordOf, recordsOf, textOf } from "@nodekeeper/core/kube";
import { type ClaimDetails, detailsOf, textsOf } from "./claim-details.ts";

/** A device as the kubelet, drivers and CDI files identify it within a claim. */
export interface DeviceIdentity {
  /** "<request>" or "<request>/<subrequest>". */
  request: string;
  pool: string;
  device: string;
  /** Empty if the device is not shared. */
  shareId: string;
}

/** An allocation result, with what the driver needs to prepare it. */
export interface AllocatedDevice extends DeviceIdentity {
  consumedCapacity: Record<string, string>;
  adminAccess: boolean;
  /** The class's entries first, then the claim's. Parameters are JSON as the API server sent it, byte for byte. */
  configuration: { source: string; parameters: string }[];
  /** Condition types, as published when the device was allocated; not set if there are none. */
  bindingConditions?: string[];
  bindingFailureConditions?: string[];
}

/** A pod that a claim is reserved for, in the claim's namespace. */
export interface ClaimPod {
  name: string;
  uid: string;
  /** Set if the claim was generated from a template for this pod. */
  isOwner?: true;
  /** Not set if it is not known. */
  serviceAccount?: string;
}

/** A ResourceClaim's allocated devices of one driver. */
export interface Allocation {
  pods: ClaimPod[];
  devices: AllocatedDevice[];
  details?: ClaimDetails | undefined;
}

/** Returns the request without its subrequest, as pods and the kubelet refer to it. */
export function baseRequest(request: string): string {
  return request.split("/")[0]!;
}

export function sameDevice(a: DeviceIdentity, b: DeviceIdentity): boolean {
  return a.request === b.request && a.pool === b.pool && a.device === b.device && a.shareId === b.shareId;
}

/** Returns whether all of these devices are among `devices`. */
export function hasDevices(devices: readonly DeviceIdentity[], these: readonly DeviceIdentity[]): boolean {
  return these.every((device) => devices.some((each) => sameDevice(each, device)));
}

/** Returns whether these devices can't be prepared for two claims at once. Shares of one device can. */
export function isExclusive(a: DeviceIdentity, b: DeviceIdentity): boolean {
  const areShares = a.shareId !== "" && b.shareId !== "" && a.shareId !== b.shareId;
  return a.pool === b.pool && a.device === b.device && !areShares;
}

/**
 * Returns the allocation of a ResourceClaim from ClaimReader. The status is the same in resource.k8s.io v1, v1beta2 and
 * v1beta1. Throws `conflict` if the claim is not allocated.
 */
export function allocationOf(claim: KubeObject, driver: string): Allocation {
  const status = recordOf(claim.status);
  const owners = recordsOf(claim.metadata.ownerReferences)
    .filter(({ kind }) => kind === "Pod")
    .map(({ uid }) => uid);
  if (!isRecord(status.allocation))
    throw new ClaimNotPreparable({ problem: "the ResourceClaim is not allocated" });
  const devices = recordOf(status.allocation.devices);
  const configuration = recordsOf(devices.config).flatMap((entry) => configurationOf(entry, driver));
  const ordered = [
    ...configuration.filter(({ source }) => source === "FromClass"),
    ...configuration.filter(({ source }) => source !== "FromClass"),
  ];
  return {
    pods: recordsOf(status.reservedFor)
      .filter(({ resource }) => resource === "pods")
      .map(({ name, uid }) => ({
        name: textOf(name),
        uid: textOf(uid),
        ...(owners.includes(uid) ? { isOwner: true as const } : {}),
      })),
    devices: recordsOf(devices.results)
      .filter((result) => result.driver === driver)
      .map((result) => {
        const request = textOf(result.request);
        return {
          request,
          pool: textOf(result.pool),
          device: textOf(result.device),
          shareId: textOf(result.shareID),
          consumedCapacity: textsOf(result.consumedCapacity),
          adminAccess: result.adminAccess === true,
          configuration: ordered
            .filter(({ requests }) => applies(requests, request))
            .map(({ source, parameters }) => ({ source, parameters })),
          ...bindingOf(result),
        };
      }),
    details: detailsOf(claim),
  };
}

// Source: DeviceAllocationConfiguration of resource.k8s.io. Without requests it applies to all; a main request applies
// to all of its subrequests.
function applies(requests: readonly string[], request: string): boolean {
  return requests.length === 0 || requests.includes(request) || requests.includes(baseRequest(request));
}

function configurationOf(entry: Record<string, unknown>, driver: string) {
  const opaque = recordOf(entry.opaque);
  if (opaque.driver !== driver) return [];
  return [
    {
      source: textOf(entry.source),
      requests: listOf(entry.requests),
      parameters: textOf(opaque.parameters) || "{}",
    },
  ];
}

function bindingOf(result: Record<string, unknown>) {
  const bindingConditions = listOf(result.bindingConditions);
  const bindingFailureConditions = listOf(result.bindingFailureConditions);
  return {
    ...(bindingConditions.length > 0 ? { bindingConditions } : {}),
    ...(bindingFailureConditions.length > 0 ? { bindingFailureConditions } : {}),
  };
}

function listOf(value: unknown): string[] {
  return Array.isArray(value) ? value.map(textOf) : [];
}
