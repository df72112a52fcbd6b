import type { ApiAnswers, Frozen } from "@nodekeeper/api/openapi";
import type { ForeignSlice, StoredSlice } from "../model/checked.ts";
import type { Device, DeviceProblem } from "../model/model.ts";
import type { StoredModel } from "../model/stored-model.ts";
import type { Desired, Driver } from "./driver.ts";
import type { DriverSync } from "./driver-sync.ts";

/** A driver as `nodekeeper devices` shows it. Times are wall milliseconds. */
export type DriverStatus = Frozen<ApiAnswers["devices"][number]>;

/** A device to publish, and the names of the stored slices that contain it. */
export interface PublishedDevice {
  pool: string;
  device: Device;
  slices: string[];
}

interface Slices {
  slices: readonly (StoredSlice | StoredModel)[];
  /** Of other clients, in the driver's pools. */
  foreign: readonly ForeignSlice[];
}

/** The publication of one driver's pools beyond the node. Empty unless this agent publishes them. */
export interface ClusterPoolsOf extends Slices {
  /** "<namespace>/<name>" */
  lease: string;
  /** The identity of the lease's holder, which begins with its node's name. Undefined if it is not known. */
  holder: string | undefined;
  isHolder: boolean;
  /** Why the lease can't be read or acquired. */
  problem: string | undefined;
  desired: Desired | undefined;
  sync: DriverSync | undefined;
}

const MOST_SHOWN = 100;

/** Returns the status of a driver, from its slices at the API server and the state of its writes. */
export function driverStatus(
  driver: Driver,
  { slices, foreign }: Slices,
  desired: Desired | undefined,
  sync: DriverSync | undefined,
  cluster: ClusterPoolsOf | undefined,
): DriverStatus {
  const { name, standing } = driver;
  const { isRegistered, protocol, messageAt, state, unresponsive } = standing;
  const isUnresponsive = unresponsive && (state === "streaming" || state === "ended");
  const pools = desired?.pools.map((pool) => ({ name: pool.name, devices: pool.devices.length })) ?? [];
  const instances = desired?.models.reduce((sum, model) => sum + model.instances.length, 0) ?? 0;
  const claimProblems = driver.feedback.presentOfClaims;
  const parts: Part[] = [{ desired, sync }, ...(cluster ? [cluster] : [])];
  const contested = foreign.filter(({ pool }) => pools.some((own) => own.name === pool));
  return {
    name,
    isRegistered,
    state: isUnresponsive ? "unresponsive" : state,
    since: isUnresponsive ? unresponsive.since : standing.since,
    protocol,
    messageAt,
    error: standing.error ?? unresponsive?.reason,
    reported: pools.reduce((sum, { devices }) => sum + devices, instances),
    devices: publishedDevices(slices, contested),
    pools,
    slices: slices.map(sliceStatus).sort((a, b) => (a.name < b.name ? -1 : 1)),
    foreign: contested.map((slice) => slice.name).sort(),
    quarantined: parts.reduce((sum, part) => sum + quarantinedOf(part), 0),
    problems: parts.flatMap(problemsOf).slice(0, MOST_SHOWN),
    writeError: sync?.problem?.message,
    refused: Object.fromEntries(sync?.refusedSlices ?? []),
    dropped: [...(desired?.dropped ?? []), ...(sync?.changed ?? [])].slice(0, MOST_SHOWN),
    ...(claimProblems.length > 0 && { claimProblems }),
    ...(cluster && { clusterPools: clusterStatus(cluster) }),
  };
}

interface Part {
  desired: Desired | undefined;
  sync: DriverSync | undefined;
}

function quarantinedOf({ desired, sync }: Part): number {
  return (desired?.quarantined ?? 0) + (sync?.refused.size ?? 0);
}

function problemsOf({ desired, sync }: Part): DeviceProblem[] {
  return [...(desired?.problems ?? []), ...(sync?.refused.problems() ?? [])];
}

function clusterStatus({
  lease,
  holder,
  isHolder,
  problem,
  slices,
  foreign,
  desired,
  sync,
}: ClusterPoolsOf): DriverStatus["clusterPools"] {
  return {
    lease,
    holder,
    isHolder,
    pools: desired?.pools.map(({ name, devices }) => ({ name, devices: devices.length })) ?? [],
    devices: publishedDevices(slices, foreign),
    slices: slices.map(sliceStatus).sort((a, b) => (a.name < b.name ? -1 : 1)),
    writeError: problem ?? sync?.problem?.message,
    refused: Object.fromEntries(sync?.refusedSlices ?? []),
  };
}

/**
 * A driver that has claims but no published devices.
 * @param since wall milliseconds when it disconnected
 */
export function departedDriver(name: string, since: number, error: string): DriverStatus {
  return {
    name,
    isRegistered: false,
    state: "ended",
    since,
    protocol: "none",
    messageAt: undefined,
    error,
    reported: 0,
    devices: 0,
    pools: [],
    slices: [],
    foreign: [],
    quarantined: 0,
    problems: [],
    writeError: undefined,
    refused: {},
    dropped: [],
  };
}

/** Returns the names of the slices that contain each device, by "<pool>/<device>". */
export function slicesByDevice(slices: readonly (StoredSlice | StoredModel)[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const slice of slices) {
    if (!("pool" in slice)) continue;
    for (const { name } of slice.devices) {
      const key = `${slice.pool.name}/${name}`;
      const names = found.get(key);
      if (names) names.push(slice.name);
      else found.set(key, [slice.name]);
    }
  }
  return found;
}

// As in the scheduler, only the newest generation of a pool counts, and only if it is complete.
function publishedDevices(
  slices: readonly (StoredSlice | StoredModel)[],
  foreign: readonly ForeignSlice[],
): number {
  let count = 0;
  const pools = Map.groupBy(slices, (slice) => ("pool" in slice ? slice.pool.name : ""));
  for (const [pool, all] of pools) {
    const stored = all.filter((slice): slice is StoredSlice => "pool" in slice);
    for (const slice of all) if (!("pool" in slice)) count += slice.instances;
    const others = foreign.filter((slice) => slice.pool === pool).map(({ generation }) => generation);
    const generation = Math.max(0, ...stored.map((slice) => slice.pool.generation), ...others);
    const newest = stored.filter((slice) => slice.pool.generation === generation);
    const isWhole =
      !others.includes(generation) &&
      newest.every((slice) => slice.pool.resourceSliceCount === newest.length);
    if (isWhole) count += newest.reduce((sum, { devices }) => sum + devices.length, 0);
  }
  return count;
}

function sliceStatus(slice: StoredSlice | StoredModel): DriverStatus["slices"][number] {
  const { name } = slice;
  if (!("pool" in slice)) return { name, pool: "", generation: 0, devices: slice.instances };
  return { name, pool: slice.pool.name, generation: slice.pool.generation, devices: slice.devices.length };
}
