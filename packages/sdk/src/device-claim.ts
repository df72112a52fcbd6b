import type {
  AllocatedDevice as AllocatedDeviceMessage,
  ClaimRequest as ClaimRequestMessage,
  DeepPartial,
  PrepareDevicesRequest,
  PreparedClaim as PreparedClaimMessage,
  PreparedDevice as PreparedDeviceMessage,
  UnprepareDevicesRequest,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { NodekeeperError, parseWithBigInts } from "@nodekeeper/core/lib";

/** A ResourceClaim. Agents before v1alpha2 send only its namespace, name and UID. */
export interface DeviceClaim {
  namespace: string;
  name: string;
  uid: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
  /** All requests of the claim, also those for devices of other drivers. Alternatives are listed each. */
  requests: ClaimRequest[];
}

/** A request as specified in the claim. */
export interface ClaimRequest {
  /** "<request>" or "<request>/<subrequest>", as in `AllocatedDevice`. */
  name: string;
  deviceClassName: string;
  allocationMode: "ExactCount" | "All";
  /** For "ExactCount". */
  count: number;
  adminAccess: boolean;
  /** CEL expressions. */
  selectors: string[];
  /** The requested part of devices that are shared: quantities by capacity name. */
  capacity: Record<string, string>;
}

/** A pod that a claim is reserved for. */
export interface ClaimPod {
  name: string;
  uid: string;
  namespace: string;
  /** Not set if it is not known. */
  serviceAccount?: string;
}

/** A ResourceClaim whose devices of this driver must be prepared for containers. */
export interface ClaimToPrepare extends DeviceClaim {
  /** The pods that the claim is reserved for. */
  pods: ClaimPod[];
  /** The claim's allocated devices of this driver. */
  devices: AllocatedDevice[];
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
  /** Condition types, as published when the device was allocated. */
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

/** A claim that no container uses any more. */
export interface ClaimToUnprepare extends DeviceClaim {
  /** The pods that the claim was reserved for; empty if unknown. */
  pods: ClaimPod[];
  /**
   * As in the last `prepare` of the claim; empty if the agent has no record of it. They have no configuration if the
   * agent's state directory was lost since.
   */
  devices: AllocatedDevice[];
}

/** A claim that the agent has recorded, as in the last `prepare` of the claim. */
export interface RecordedClaim extends ClaimToPrepare {
  /** Whether it is prepared. If not, `prepare` or `unprepare` is called for it. */
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
}

/** Edits as in the Container Device Interface (CDI), version 0.5.0. At least one is required. */
export interface ContainerEdits {
  env?: Record<string, string>;
  deviceNodes?: DeviceNode[];
  mounts?: Mount[];
  hooks?: Hook[];
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
  return claimOf(request);
}

/** See `claimToPrepare`. */
export function claimToUnprepare(request: UnprepareDevicesRequest): ClaimToUnprepare {
  return claimOf(request);
}

/** See `claimToPrepare`. */
export function recordedClaim(claim: PreparedClaimMessage): RecordedClaim {
  return { ...claimOf(claim), isPrepared: claim.isPrepared };
}

export function preparedDevice(device: PreparedDevice): DeepPartial<PreparedDeviceMessage> {
  const { edits, shareId = "", ...rest } = device;
  if (!edits) return { ...rest, shareId };
  const { env, deviceNodes = [], mounts = [], hooks = [] } = edits;
  return {
    ...rest,
    shareId,
    edits: {
      env: envTexts(env),
      deviceNodes: deviceNodes.map(({ major = 0, minor = 0, ...node }) => ({
        ...node,
        major: BigInt(major),
        minor: BigInt(minor),
      })),
      mounts,
      hooks: hooks.map((hook) => ({ ...hook, env: envTexts(hook.env) })),
    },
  };
}

function claimOf({
  claim,
  pods,
  devices,
}: PrepareDevicesRequest | UnprepareDevicesRequest | PreparedClaimMessage): ClaimToPrepare {
  const { namespace = "", name = "", uid = "", labels = {}, annotations = {}, requests = [] } = claim ?? {};
  return {
    namespace,
    name,
    uid,
    labels,
    annotations,
    requests: requests.map(requestOf),
    // Older agents do not send the namespace, which is the claim's.
    pods: pods.map((pod) => ({
      name: pod.name,
      uid: pod.uid,
      namespace: pod.namespace || namespace,
      ...(pod.serviceAccount ? { serviceAccount: pod.serviceAccount } : {}),
    })),
    devices: devices.map(deviceOf),
  };
}

function deviceOf({
  request,
  pool,
  device,
  shareId,
  consumedCapacity,
  adminAccess,
  configuration,
  bindingConditions,
  bindingFailureConditions,
}: AllocatedDeviceMessage): AllocatedDevice {
  return {
    request,
    pool,
    device,
    ...(shareId ? { shareId } : {}),
    consumedCapacity,
    adminAccess,
    configuration: configuration.map(({ source, parameters }) => ({
      source: source === "FromClass" ? "FromClass" : "FromClaim",
      parameters: parsed(parameters),
      parametersText: parameters,
    })),
    bindingConditions,
    bindingFailureConditions,
  };
}

function requestOf({ allocationMode, count, ...request }: ClaimRequestMessage): ClaimRequest {
  return {
    ...request,
    allocationMode: allocationMode === "All" ? "All" : "ExactCount",
    count: Number(count),
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
