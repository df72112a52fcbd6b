import { counted } from "@nodekeeper/api/wording";
import { addressOf } from "../../../address.ts";
import { deviceText, type Holders, holdersOf } from "../devices/claim-text.ts";
import {
  type Device,
  type Driver,
  type DriverClaims,
  type GridDevice,
  gridDevices,
} from "../devices/device-state.ts";
import type { TreeNode } from "./tree-node.ts";

/** The devices of a driver as far as they were read. Undefined if they were not. */
export interface KnownDevices {
  readonly devices: readonly Device[];
  /** Whether the driver has more of them. */
  readonly hasMore: boolean;
}

/** Returns the key of a driver's node. */
export function driverKey(driver: string): string {
  return `driver ${driver}`;
}

/** Returns a driver as a node: its pools, and their devices with what holds them. */
export function driverNode(
  driver: Driver,
  claims: DriverClaims | undefined,
  known: KnownDevices | undefined,
): TreeNode {
  const { name, reported, devices, quarantined, error, writeError, isRegistered } = driver;
  const key = driverKey(name);
  const more = [addressOf("resources", ["devices"], { driver: name }), "The driver's devices"] as const;
  const problem = error ?? writeError ?? (isRegistered ? undefined : "disconnected");
  return {
    key,
    label: name,
    value: counted(devices, "device"),
    note: problem ?? (quarantined > 0 ? `${quarantined} quarantined` : "published"),
    ...(problem === undefined
      ? quarantined > 0
        ? { tone: "warn" as const }
        : {}
      : { tone: "bad" as const }),
    children: known ? poolNodes(key, driver, claims, known) : [reading(key)],
    facts: [
      ["Devices", `${reported} reported, ${devices} published, ${quarantined} quarantined`],
      ...(problem === undefined ? [] : [["Problem", problem] as const]),
    ],
    plugins: [name],
    more,
  };
}

function reading(parent: string): TreeNode {
  return { key: `${parent}/…`, label: "Reading the devices", value: "", children: [] };
}

function poolNodes(
  parent: string,
  driver: Driver,
  claims: DriverClaims | undefined,
  known: KnownDevices,
): TreeNode[] {
  const holders = holdersOf(claims?.claims ?? []);
  const byPool = new Map<string, GridDevice[]>(driver.pools.map(({ name }) => [name, []]));
  for (const device of gridDevices(driver, known.devices, claims)) {
    const pool = byPool.get(device.pool);
    if (pool) pool.push(device);
    else byPool.set(device.pool, [device]);
  }
  const pools = [...byPool].map(([pool, devices]): TreeNode => {
    const key = `${parent}/${pool}`;
    const held = devices.filter((device) => holders.has(device.key)).length;
    return {
      key,
      label: `Pool ${pool || "–"}`,
      value: counted(driver.pools.find(({ name }) => name === pool)?.devices ?? devices.length, "device"),
      note: held > 0 ? `${held} held` : "",
      children: devices.map((device) => deviceNode(key, driver.name, device, holders)),
      plugins: [driver.name],
    };
  });
  if (!known.hasMore) return pools;
  return [
    ...pools,
    { key: `${parent}/more`, label: "More devices are in the tab Devices", value: "", children: [] },
  ];
}

function deviceNode(parent: string, driver: string, device: GridDevice, holders: Holders): TreeNode {
  const { name, key, state, device: published } = device;
  const attributes = Object.entries(published?.attributes ?? {});
  const isBroken = state === "quarantined" || state === "unhealthy";
  return {
    key: `${parent}/${name}`,
    label: name,
    value: state,
    ...(isBroken ? { tone: "bad" as const } : state === "tainted" ? { tone: "warn" as const } : {}),
    children: [],
    facts: [["State", deviceText(device, holders)], ...attributes],
    pods: [...new Set((holders.get(key) ?? []).flatMap(({ pods = [] }) => pods))],
    plugins: [driver],
    more: [addressOf("resources", ["devices"], { driver, device: `${driver}/${key}` }), "The device"],
  };
}
