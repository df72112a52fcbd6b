import type { StoredSlice } from "./checked.ts";
import type { Desired, Driver } from "./driver.ts";
import type { StreamState } from "./driver-stream.ts";
import type { DroppedField } from "./features.ts";
import type { DeviceProblem } from "./model.ts";
import type { StoredModel } from "./plan-models.ts";

/** A slice as the API server has it. */
export interface SliceStatus {
  name: string;
  /** Empty in v1alpha2. */
  pool: string;
  generation: number;
  devices: number;
}

/** A driver as `nodekeeper devices` shows it. Times are wall milliseconds. */
export interface DriverStatus {
  name: string;
  isRegistered: boolean;
  state: StreamState;
  since: number;
  protocol: string;
  messageAt: number | undefined;
  /** What is wrong with its stream. */
  error: string | undefined;
  /** Devices that shall be published. */
  devices: number;
  pools: { name: string; devices: number }[];
  slices: SliceStatus[];
  quarantined: number;
  /** At most 100. */
  problems: readonly DeviceProblem[];
  /** Why the slices can't be written. */
  writeError: string | undefined;
  /** Slices that the API server refuses, and its words. */
  refused: Record<string, string>;
  /** Parts that the API server drops; at most 100. */
  dropped: readonly DroppedField[];
}

const MOST_SHOWN = 100;

export function driverStatus(
  { name, isRegistered, state, since, protocol, messageAt, error }: Driver,
  desired: Desired | undefined,
  slices: readonly (StoredSlice | StoredModel)[],
  sync: { error: string | undefined; refused: ReadonlyMap<string, string>; dropped: readonly DroppedField[] },
): DriverStatus {
  const pools = desired?.pools.map((pool) => ({ name: pool.name, devices: pool.devices.length })) ?? [];
  const instances = desired?.models.reduce((sum, model) => sum + model.instances.length, 0) ?? 0;
  return {
    name,
    isRegistered,
    state,
    since,
    protocol,
    messageAt,
    error,
    devices: pools.reduce((sum, { devices }) => sum + devices, instances),
    pools,
    slices: slices.map(sliceStatus).sort((a, b) => (a.name < b.name ? -1 : 1)),
    quarantined: desired?.quarantined ?? 0,
    problems: desired?.problems.slice(0, MOST_SHOWN) ?? [],
    writeError: sync.error,
    refused: Object.fromEntries(sync.refused),
    dropped: sync.dropped.slice(0, MOST_SHOWN),
  };
}

function sliceStatus(slice: StoredSlice | StoredModel): SliceStatus {
  const { name } = slice;
  if (!("pool" in slice)) return { name, pool: "", generation: 0, devices: 0 };
  return { name, pool: slice.pool.name, generation: slice.pool.generation, devices: slice.devices.length };
}
