import type {
  ContainerEdits,
  DeviceNode,
  Hook,
  Mount,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { quote } from "@nodekeeper/core/lib";
import { absolute, checkCount, containerPath, plain, refusal, variable } from "./edit-checks.ts";
import type { HostFiles } from "./host-files.ts";
import { additionalGids, type CdiIntelRdt, type CdiNetDevice, intelRdt, netDevice } from "./linux-edits.ts";

/** Container edits in the format of a CDI file. */
export interface CdiEdits {
  env?: string[];
  deviceNodes?: CdiDeviceNode[];
  mounts?: { hostPath: string; containerPath: string; type?: string; options?: string[] }[];
  hooks?: { hookName: string; path: string; args?: string[]; env?: string[]; timeout?: number }[];
  netDevices?: CdiNetDevice[];
  intelRdt?: CdiIntelRdt;
  additionalGids?: number[];
}

interface CdiDeviceNode {
  path: string;
  hostPath?: string;
  type?: string;
  major?: number;
  minor?: number;
  fileMode?: number;
  permissions?: string;
  uid?: number;
  gid?: number;
}

const hookNames = ["prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"];
const nodeTypes = ["b", "c", "u", "p"];

const MOST_NET_DEVICES = 16;

/**
 * Checks the host paths and network interfaces of earlier edits again, because owners, modes, links and routes may have
 * changed. A path that no longer exists is not an error. Throws `invalid` as `HostFiles.checkAllowed` and
 * `HostFiles.checkInterface` do.
 */
export async function checkHostPaths(edits: CdiEdits, host: HostFiles): Promise<void> {
  const { deviceNodes = [], mounts = [], hooks = [], netDevices = [] } = edits;
  const paths = [
    ...deviceNodes.map(({ hostPath, path }, at) => [
      hostPath ?? path,
      `deviceNodes[${at}].${hostPath ? "hostPath" : "path"}`,
    ]),
    ...mounts.map(({ hostPath }, at) => [hostPath, `mounts[${at}].hostPath`]),
    ...hooks.map(({ path }, at) => [path, `hooks[${at}].path`]),
  ] as const;
  // The source of a tmpfs is not a path.
  for (const [path = "", field = ""] of paths) if (path.startsWith("/")) await host.checkAllowed(path, field);
  for (const [at, { hostInterfaceName }] of netDevices.entries())
    await host.checkInterface(hostInterfaceName, `netDevices[${at}].hostInterfaceName`);
}

/**
 * Converts a driver's edits to the format of a CDI file. Container runtimes reject an entire file for
 * one invalid entry, or fail when the container starts, so everything that can be checked earlier is checked here.
 * Throws `invalid` with the field.
 */
export async function cdiEdits(edits: ContainerEdits, host: HostFiles): Promise<CdiEdits> {
  const { env, deviceNodes, mounts, hooks, netDevices, intelRdt: rdt, additionalGids: gids } = edits;
  // Bounded, because checkInterface reads the interfaces stacked on each of them.
  if (netDevices.length > MOST_NET_DEVICES)
    throw refusal("netDevices", `has ${netDevices.length} entries, more than ${MOST_NET_DEVICES}`);
  const lists = { env, deviceNodes, mounts, hooks, netDevices };
  for (const [field, list] of Object.entries(lists)) checkCount(field, list);
  additionalGids(gids);
  if (!rdt && gids.length === 0 && Object.values(lists).every(({ length }) => length === 0))
    throw refusal("", "must not be empty; omit them if containers need no edits");
  const each = async <Item, Edit>(
    items: readonly Item[],
    field: string,
    convert: (item: Item, field: string, host: HostFiles) => Promise<Edit>,
  ): Promise<Edit[] | undefined> =>
    items.length > 0
      ? await Promise.all(items.map((item, at) => convert(item, `${field}[${at}]`, host)))
      : undefined;
  return {
    env: env.length > 0 ? env.map((text, at) => variable(text, `env[${at}]`)) : undefined,
    deviceNodes: await each(deviceNodes, "deviceNodes", deviceNode),
    mounts: await each(mounts, "mounts", mount),
    hooks: await each(hooks, "hooks", hook),
    netDevices: await each(netDevices, "netDevices", netDevice),
    intelRdt: rdt && intelRdt(rdt),
    additionalGids: gids.length > 0 ? gids : undefined,
  };
}

async function deviceNode(node: DeviceNode, field: string, host: HostFiles): Promise<CdiDeviceNode> {
  const { path, hostPath, type, permissions, fileMode, uid, gid } = node;
  containerPath(path, `${field}.path`);
  if (hostPath !== "") absolute(hostPath, `${field}.hostPath`);
  const where = hostPath === "" ? `${field}.path` : `${field}.hostPath`;
  if (type !== "" && !nodeTypes.includes(type))
    throw refusal(`${field}.type`, `${quote(type)} is not one of ${nodeTypes.join(", ")}`);
  const [major, minor] = [node.major, node.minor].map(Number) as [number, number];
  if (!isDeviceNumber(major) || !isDeviceNumber(minor))
    throw refusal(field, `${node.major}:${node.minor} is not a device number`);
  // Runtimes would combine the type of the node's file with these numbers, so that any device could be specified.
  if (host.isRestricted && type === "" && (major !== 0 || minor !== 0))
    throw refusal(
      `${field}.type`,
      `must be set if device numbers are specified: ${major}:${minor} (devices.kubeletPlugin.hostPaths)`,
    );
  if (!/^([rwm]{0,3}|none)$/.test(permissions))
    throw refusal(`${field}.permissions`, `${quote(permissions)} may only contain r, w and m`);
  const onNode = hostPath || path;
  await host.checkAllowed(onNode, where);
  // Under this condition, runtimes read the node's file.
  if (type === "" || (major === 0 && type !== "p")) await host.checkDevice(onNode, where);
  else if (type !== "p") await host.checkNumbers(onNode, { type, major, minor }, field);
  return {
    path,
    ...(hostPath === "" ? {} : { hostPath }),
    ...(type === "" ? {} : { type }),
    ...(major === 0 && minor === 0 ? {} : { major, minor }),
    ...(fileMode === undefined ? {} : { fileMode }),
    ...(permissions === "" ? {} : { permissions }),
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
  };
}

async function mount(
  { hostPath, containerPath: path, type, options }: Mount,
  field: string,
  host: HostFiles,
): Promise<NonNullable<CdiEdits["mounts"]>[number]> {
  containerPath(path, `${field}.containerPath`);
  for (const [at, option] of options.entries()) plain(option, `${field}.options[${at}]`);
  plain(type, `${field}.type`, true);
  // These options make a mount of any type a bind mount.
  const isBindByOption = options.some((option) => option === "bind" || option === "rbind");
  // The source of other mounts need not be a path, such as "tmpfs".
  if (type === "" || type === "bind" || isBindByOption) {
    absolute(hostPath, `${field}.hostPath`);
    await host.checkAllowed(hostPath, `${field}.hostPath`);
    await host.checkExists(hostPath, `${field}.hostPath`);
  } else {
    plain(hostPath, `${field}.hostPath`);
    // Other types may have host paths and device numbers in their source and options.
    if (host.isRestricted && type !== "tmpfs")
      throw refusal(
        `${field}.type`,
        `${quote(type)} is neither a bind mount nor a tmpfs (devices.kubeletPlugin.hostPaths)`,
      );
    // A device or an image, as for ext4.
    if (hostPath.startsWith("/")) await host.checkAllowed(hostPath, `${field}.hostPath`);
  }
  // A bind mount must be requested in the options: runc would interpret the type as a file system.
  const needsOption = type === "" && !isBindByOption;
  return {
    hostPath,
    containerPath: path,
    ...(type === "" ? {} : { type }),
    options: needsOption ? [...options, "bind"] : options,
  };
}

async function hook(
  { hookName, path, args, env, timeout }: Hook,
  field: string,
  host: HostFiles,
): Promise<NonNullable<CdiEdits["hooks"]>[number]> {
  if (!hookNames.includes(hookName))
    throw refusal(`${field}.hookName`, `${quote(hookName)} is not one of ${hookNames.join(", ")}`);
  absolute(path, `${field}.path`);
  await host.checkAllowed(path, `${field}.path`);
  await host.checkExists(path, `${field}.path`);
  for (const [at, argument] of args.entries()) plain(argument, `${field}.args[${at}]`, true);
  if (timeout < 0) throw refusal(`${field}.timeout`, `${timeout} is negative`);
  return {
    hookName,
    path,
    ...(args.length > 0 ? { args } : {}),
    ...(env.length > 0 ? { env: env.map((text, at) => variable(text, `${field}.env[${at}]`)) } : {}),
    ...(timeout > 0 ? { timeout } : {}),
  };
}

function isDeviceNumber(number: number): boolean {
  return number >= 0 && number < 2 ** 32;
}
