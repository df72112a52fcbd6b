import { isRecord, type KubeObject } from "@nodekeeper/core/kube";
import { NodekeeperError } from "@nodekeeper/core/lib";

/** A device as the kubelet, drivers and CDI files identify it within a claim. */
export interface DeviceIdentity {
  /** "<request>" or "<request>/<subrequest>". */
  request: string;
  pool: string;
  device: string;
  /** Empty where the device is not shared. */
  shareId: string;
}

/** A result of an allocation with what the driver has to know of it. */
export interface AllocatedDevice extends DeviceIdentity {
  consumedCapacity: Record<string, string>;
  adminAccess: boolean;
  /** The class's first, then the claim's. */
  configuration: { source: string; parameters: string }[];
}

/** What a ResourceClaim was allocated of one driver. */
export interface Allocation {
  pods: { name: string; uid: string }[];
  devices: AllocatedDevice[];
}

/** The request of a result without its subrequest: what pods and the kubelet refer to. */
export function baseRequest(request: string): string {
  return request.split("/")[0]!;
}

export function sameDevice(a: DeviceIdentity, b: DeviceIdentity): boolean {
  return a.request === b.request && a.pool === b.pool && a.device === b.device && a.shareId === b.shareId;
}

/** Whether two claims can't have both of these prepared at once; shares of one device can. */
export function isExclusive(a: DeviceIdentity, b: DeviceIdentity): boolean {
  const areShares = a.shareId !== "" && b.shareId !== "" && a.shareId !== b.shareId;
  return a.pool === b.pool && a.device === b.device && !areShares;
}

/**
 * Reads the allocation of a ResourceClaim of resource.k8s.io v1, v1beta2 or v1beta1, which have the same status.
 * Throws `conflict` where the claim is not allocated.
 */
export function allocationOf(claim: KubeObject, driver: string): Allocation {
  const status = record(claim.status);
  if (!isRecord(status.allocation))
    throw new NodekeeperError("conflict", "the ResourceClaim is not allocated", { id: "NK1506" });
  const devices = record(status.allocation.devices);
  const configuration = list(devices.config).flatMap((entry) => configurationOf(entry, driver));
  const ordered = [
    ...configuration.filter(({ source }) => source === "FromClass"),
    ...configuration.filter(({ source }) => source !== "FromClass"),
  ];
  return {
    pods: list(status.reservedFor)
      .filter(({ resource }) => resource === "pods")
      .map(({ name, uid }) => ({ name: text(name), uid: text(uid) })),
    devices: list(devices.results)
      .filter((result) => result.driver === driver)
      .map((result) => {
        const request = text(result.request);
        return {
          request,
          pool: text(result.pool),
          device: text(result.device),
          shareId: text(result.shareID),
          consumedCapacity: Object.fromEntries(
            Object.entries(record(result.consumedCapacity)).map(([name, value]) => [name, String(value)]),
          ),
          adminAccess: result.adminAccess === true,
          configuration: ordered
            .filter(({ requests }) => applies(requests, request))
            .map(({ source, parameters }) => ({ source, parameters })),
        };
      }),
  };
}

// DeviceAllocationConfiguration of resource.k8s.io: for all requests where it names none; a main request's is for all of
// its subrequests.
function applies(requests: readonly string[], request: string): boolean {
  return requests.length === 0 || requests.includes(request) || requests.includes(baseRequest(request));
}

function configurationOf(entry: Record<string, unknown>, driver: string) {
  const opaque = record(entry.opaque);
  if (opaque.driver !== driver) return [];
  const requests = Array.isArray(entry.requests) ? entry.requests.map(text) : [];
  return [{ source: text(entry.source), requests, parameters: JSON.stringify(opaque.parameters ?? {}) }];
}

function record(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {};
}

function list(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
