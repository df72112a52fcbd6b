import type {
  AllocatedDevice as AllocatedDeviceMessage,
  DeepPartial,
  PrepareDevicesRequest,
  PreparedDevice as PreparedDeviceMessage,
  UnprepareDevicesRequest,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha1/preparation.ts";
import { NodekeeperError } from "@nodekeeper/core/lib";

/** A ResourceClaim whose devices of this driver shall be usable by containers. */
export interface ClaimToPrepare {
  namespace: string;
  name: string;
  uid: string;
  /** The pods that the claim is reserved for. */
  pods: { name: string; uid: string }[];
  /** What the claim was allocated of this driver. */
  devices: AllocatedDevice[];
}

/** A result of an allocation. */
export interface AllocatedDevice {
  /** "<request>" or "<request>/<subrequest>". */
  request: string;
  pool: string;
  device: string;
  /** Distinguishes shares of a device that is allocated several times. */
  shareId?: string;
  /** Quantities by names of capacities, for a share. */
  consumedCapacity: Record<string, string>;
  /** For monitoring: the device may be in use by other claims. */
  adminAccess: boolean;
  /** What applies to this device, the class's first. Where two contradict, the later one is meant. */
  configuration: DeviceConfiguration[];
}

export interface DeviceConfiguration {
  source: "FromClass" | "FromClaim";
  /** The opaque parameters, in the driver's own format. */
  parameters: unknown;
}

/** A claim that no container uses any more. */
export interface ClaimToUnprepare {
  namespace: string;
  name: string;
  uid: string;
  /** As they were prepared; empty where the agent knows none. */
  devices: { request: string; pool: string; device: string; shareId?: string }[];
}

/** What containers need to use a device. The first four name it as the claim did. */
export interface PreparedDevice {
  request: string;
  pool: string;
  device: string;
  shareId?: string;
  /** What the container runtime changes in containers that use the device; leave it out where that is nothing. */
  edits?: ContainerEdits;
  /** CDI devices that the driver wrote files for itself: "<vendor>/<class>=<name>". */
  cdiDeviceIds?: string[];
}

/** Edits as in the Container Device Interface, version 0.5.0. At least one. */
export interface ContainerEdits {
  env?: Record<string, string>;
  deviceNodes?: DeviceNode[];
  mounts?: Mount[];
  hooks?: Hook[];
}

export interface DeviceNode {
  /** In the container; absolute. */
  path: string;
  /** On the node, where it is another one. It must exist, and be a device, unless `type` and `major` are given. */
  hostPath?: string;
  type?: "b" | "c" | "u" | "p";
  major?: number;
  minor?: number;
  fileMode?: number;
  /** Some of "r", "w", "m"; all of them where it is absent. */
  permissions?: string;
  uid?: number;
  gid?: number;
}

export interface Mount {
  /** Absolute; must exist on the node. */
  hostPath: string;
  /** Absolute. */
  containerPath: string;
  /** As of mount(8), such as "ro". */
  options?: string[];
  /** A bind mount where it is absent. */
  type?: string;
}

export interface Hook {
  hookName: "prestart" | "createRuntime" | "createContainer" | "startContainer" | "poststart" | "poststop";
  /** Absolute; on the node. */
  path: string;
  args?: string[];
  env?: Record<string, string>;
  /** Seconds. */
  timeout?: number;
}

/** The claim of a request; throws `invalid` where its configuration is no JSON. */
export function claimToPrepare({ claim, pods, devices }: PrepareDevicesRequest): ClaimToPrepare {
  return {
    namespace: claim?.namespace ?? "",
    name: claim?.name ?? "",
    uid: claim?.uid ?? "",
    pods: pods.map(({ name, uid }) => ({ name, uid })),
    devices: devices.map((device) => ({
      ...identityOf(device),
      consumedCapacity: device.consumedCapacity,
      adminAccess: device.adminAccess,
      configuration: device.configuration.map(({ source, parameters }) => ({
        source: source === "FromClass" ? "FromClass" : "FromClaim",
        parameters: parsed(parameters),
      })),
    })),
  };
}

export function claimToUnprepare({ claim, devices }: UnprepareDevicesRequest): ClaimToUnprepare {
  return {
    namespace: claim?.namespace ?? "",
    name: claim?.name ?? "",
    uid: claim?.uid ?? "",
    devices: devices.map(identityOf),
  };
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

function identityOf({ request, pool, device, shareId }: AllocatedDeviceMessage) {
  return { request, pool, device, ...(shareId ? { shareId } : {}) };
}

function envTexts(env: Record<string, string> = {}): string[] {
  return Object.entries(env).map(([name, value]) => `${name}=${value}`);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new NodekeeperError("invalid", "the opaque parameters of the claim are no JSON", { cause: error });
  }
}
