import type {
  AllocatedDevice as AllocatedDeviceMessage,
  ClaimToBind as ClaimToBindMessage,
  DeepPartial,
  ContainerEdits as EditsMessage,
  PrepareDevicesRequest,
  PrepareDevicesResponse,
  PreparedClaim as PreparedClaimMessage,
  RestoreClaimsRequest,
  UnprepareDevicesRequest,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { NodekeeperError, parseWithBigInts } from "@nodekeeper/core/lib";

/** A ResourceClaim whose devices of this driver must be prepared for containers. */
export interface ClaimToPrepare {
  namespace: string;
  name: string;
  uid: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
  /** All requests of the claim, also those for devices of other drivers. */
  requests: ClaimRequest[];
  /** The pods that the claim is reserved for. */
  pods: ClaimPod[];
  /** The claim's allocated devices of this driver. */
  devices: AllocatedDevice[];
}

/** A request of the claim's specification. */
export interface ClaimRequest {
  /** "<request>" or "<request>/<subrequest>". */
  name: string;
  deviceClassName: string;
  /** "ExactCount" or "All". */
  allocationMode: string;
  /** 0 unless the mode is "ExactCount". */
  count: number;
  adminAccess: boolean;
  /** CEL expressions. */
  selectors: string[];
  /** Requested parts of shared devices: quantities by capacity name. */
  capacity: Record<string, string>;
}

export interface ClaimPod {
  name: string;
  uid: string;
  namespace: string;
  /** Not set if it is not known. */
  serviceAccount?: string;
}

/** An allocation result. */
export interface AllocatedDevice {
  /** "<request>" or "<request>/<subrequest>". */
  request: string;
  pool: string;
  device: string;
  /** Distinguishes shares of a device that is allocated several times. */
  shareId?: string;
  /** For a share: quantities by capacity name. */
  consumedCapacity: Record<string, string>;
  /** For monitoring: the device may be in use by other claims. */
  adminAccess: boolean;
  /** The configuration for this device, the class's first. If entries conflict, later ones take precedence. */
  configuration: DeviceConfiguration[];
  bindingConditions: string[];
  bindingFailureConditions: string[];
}

export interface DeviceConfiguration {
  source: "FromClass" | "FromClaim";
  /** The opaque parameters, in the driver's own format. Integers beyond 2^53 are bigints. */
  parameters: unknown;
  /** The parameters as JSON, byte for byte as the API server has it. */
  parametersText: string;
}

/**
 * A claim that no container uses any more, as in the last `prepare`. Pods, devices, labels, annotations and requests
 * are empty if the agent has no record of the claim. If the agent's state directory was lost since, configuration,
 * labels, annotations and requests are empty.
 */
export type ClaimToUnprepare = ClaimToPrepare;

/** A claim that the agent has a record of. */
export interface RecordedClaim extends ClaimToPrepare {
  /** Whether `prepare` succeeded, and `unprepare` is not due. Otherwise one of the two is called later. */
  isPrepared: boolean;
}

/** What containers need to use a device. The first four fields identify it as in the claim. */
export interface PreparedDevice {
  request: string;
  pool: string;
  device: string;
  shareId?: string;
  /** Changes to containers that use the device; omit if there are none. */
  edits?: ContainerEdits;
  /** CDI devices from files that the driver wrote itself: "<vendor>/<class>=<name>". */
  cdiDeviceIds?: string[];
  /** Annotations of the CDI device, for tools that read CDI files, not for containers. Keys are as in Kubernetes. */
  annotations?: Record<string, string>;
}

/** What a driver prepared for a claim. */
export interface PreparedClaim {
  /** One for each device of the claim. */
  devices: PreparedDevice[];
  /** Made once in each container that uses any device of the claim; omit if there are none. */
  edits?: ContainerEdits;
}

/**
 * Edits as in the Container Device Interface (CDI), up to version 1.1.0. At least one is required. The CDI file has the
 * lowest version that they need; a container runtime that does not know it does not start the container.
 */
export interface ContainerEdits {
  env?: Record<string, string>;
  deviceNodes?: DeviceNode[];
  mounts?: Mount[];
  hooks?: Hook[];
  /** Additional group IDs of the container's first process, not 0. Needs CDI 0.7.0. */
  additionalGids?: number[];
  /** Needs CDI 0.7.0; `schemata` and `enableMonitoring` need 1.1.0. */
  intelRdt?: IntelRdt;
  /** Network interfaces of the node that are moved into the container's network namespace. Needs CDI 1.1.0. */
  netDevices?: NetDevice[];
}

/** Intel Resource Director Technology, as in the OCI runtime specification. At least one field is required. */
export interface IntelRdt {
  /** Class of service. */
  closId?: string;
  l3CacheSchema?: string;
  memBwSchema?: string;
  schemata?: string[];
  enableMonitoring?: boolean;
}

export interface NetDevice {
  /** Name of the interface on the node. Interfaces that carry the node's default route are refused. */
  hostInterfaceName: string;
  /** Name in the container. Default: as on the node. */
  name?: string;
}

export interface DeviceNode {
  /** Absolute path in the container. */
  path: string;
  /** Path on the node, if it differs. It must exist and be a device, unless `type` and `major` are set. */
  hostPath?: string;
  type?: "b" | "c" | "u" | "p";
  major?: number;
  minor?: number;
  fileMode?: number;
  /** Any of "r", "w", "m". Default: all. */
  permissions?: string;
  uid?: number;
  gid?: number;
}

export interface Mount {
  /** Absolute path; must exist on the node. Each component must belong to root and be writable only by root. */
  hostPath: string;
  /** Absolute. */
  containerPath: string;
  /** Options of mount(8), such as "ro". */
  options?: string[];
  /** Default: a bind mount. */
  type?: string;
}

export interface Hook {
  hookName: "prestart" | "createRuntime" | "createContainer" | "startContainer" | "poststart" | "poststop";
  /** Absolute path on the node. Each component must belong to root and be writable only by root. */
  path: string;
  args?: string[];
  env?: Record<string, string>;
  /** Seconds. */
  timeout?: number;
}

/** Returns the claim of a request. Throws `invalid` if its configuration is not JSON. */
export function claimToPrepare(request: PrepareDevicesRequest): ClaimToPrepare {
  return claimOf(request, parsed);
}

/**
 * Returns the claim of a request. Configuration that is not JSON is undefined: the claim was never prepared with it,
 * but it must still be possible to unprepare it.
 */
export function claimToUnprepare(request: UnprepareDevicesRequest | ClaimToBindMessage): ClaimToUnprepare {
  return claimOf(request, parsedIfJson);
}

/** Returns the claims of a request. */
export function recordedClaims({ claims }: RestoreClaimsRequest): RecordedClaim[] {
  return claims.map((each) => ({ ...claimOf(each, parsedIfJson), isPrepared: each.isPrepared }));
}

/** Returns what a driver prepared as a message. */
export function prepareResponse(
  prepared: PreparedDevice[] | PreparedClaim,
): DeepPartial<PrepareDevicesResponse> {
  const { devices, edits }: PreparedClaim = Array.isArray(prepared) ? { devices: prepared } : prepared;
  return {
    devices: devices.map(({ edits: own, ...device }) => ({ ...device, ...(own && { edits: editsOf(own) }) })),
    ...(edits && { edits: editsOf(edits) }),
  };
}

/**
 * Throws `invalid` if an answer has edits that need an agent of v1alpha2. An older agent would ignore them, and the
 * container would start without them.
 */
export function checkOlderAgent({ devices = [], edits }: DeepPartial<PrepareDevicesResponse>): void {
  if (edits) refuseOlderAgent("edits of the whole claim");
  for (const { edits: own = {} } of devices) {
    if (own.additionalGids?.length) refuseOlderAgent("additionalGids");
    if (own.intelRdt) refuseOlderAgent("intelRdt");
    if (own.netDevices?.length) refuseOlderAgent("netDevices");
  }
}

function refuseOlderAgent(what: string): never {
  throw new NodekeeperError(
    "invalid",
    `the driver's answer has ${what}, which this Nodekeeper agent does not know: update the agent to one of nodekeeper.devices.v1alpha2`,
  );
}

function editsOf({
  env,
  deviceNodes,
  hooks,
  netDevices,
  ...edits
}: ContainerEdits): DeepPartial<EditsMessage> {
  return {
    ...edits,
    env: envTexts(env),
    deviceNodes: deviceNodes?.map(({ major = 0, minor = 0, ...node }) => ({
      ...node,
      major: BigInt(major),
      minor: BigInt(minor),
    })),
    hooks: hooks?.map((hook) => ({ ...hook, env: envTexts(hook.env) })),
    netDevices: netDevices?.map(({ hostInterfaceName, name = hostInterfaceName }) => ({
      hostInterfaceName,
      name,
    })),
  };
}

function claimOf(
  {
    claim,
    pods,
    devices,
  }: PrepareDevicesRequest | UnprepareDevicesRequest | PreparedClaimMessage | ClaimToBindMessage,
  parse: (text: string) => unknown,
) {
  return {
    namespace: claim?.namespace ?? "",
    name: claim?.name ?? "",
    uid: claim?.uid ?? "",
    labels: claim?.labels ?? {},
    annotations: claim?.annotations ?? {},
    requests: (claim?.requests ?? []).map((request) => ({ ...request, count: Number(request.count) })),
    pods: pods.map(({ serviceAccount, ...pod }) => ({ ...pod, ...(serviceAccount && { serviceAccount }) })),
    devices: devices.map((device) => deviceOf(device, parse)),
  };
}

function deviceOf(
  {
    request,
    pool,
    device,
    shareId,
    consumedCapacity,
    adminAccess,
    configuration,
    bindingConditions,
    bindingFailureConditions,
  }: AllocatedDeviceMessage,
  parse: (text: string) => unknown,
): AllocatedDevice {
  return {
    request,
    pool,
    device,
    ...(shareId ? { shareId } : {}),
    consumedCapacity,
    adminAccess,
    configuration: configuration.map(({ source, parameters }) => ({
      source: source === "FromClass" ? "FromClass" : "FromClaim",
      parameters: parse(parameters),
      parametersText: parameters,
    })),
    bindingConditions,
    bindingFailureConditions,
  };
}

function envTexts(env: Record<string, string> = {}): string[] {
  return Object.entries(env).map(([name, value]) => `${name}=${value}`);
}

function parsed(text: string): unknown {
  try {
    return parseWithBigInts(text);
  } catch (error) {
    throw new NodekeeperError("invalid", "the opaque parameters of the claim are no JSON", { cause: error });
  }
}

function parsedIfJson(text: string): unknown {
  try {
    return parsed(text);
  } catch {
    return undefined;
  }
}
