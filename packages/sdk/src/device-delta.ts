import { isDeepStrictEqual } from "node:util";
import type { DeepPartial, Pool, PoolDelta } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha1/api.ts";

type Devices = NonNullable<DeepPartial<Pool>["devices"]>;

/**
 * What has changed between two states of a driver, for an agent that accepts deltas; undefined where it has to get the
 * whole state: when pools come, go or differ in more than their devices, when devices change places or new ones do not
 * come last, and when a delta would hardly be smaller.
 */
export function deltaOf(
  before: readonly DeepPartial<Pool>[],
  after: readonly DeepPartial<Pool>[],
): DeepPartial<PoolDelta>[] | undefined {
  if (before.length !== after.length) return undefined;
  const deltas: DeepPartial<PoolDelta>[] = [];
  for (const [at, pool] of after.entries()) {
    const { devices: old = [], ...oldFields } = before[at]!;
    const { devices = [], ...fields } = pool;
    if (!isDeepStrictEqual(oldFields, fields)) return undefined;
    const delta = changesOf(old, devices);
    if (!delta) return undefined;
    if (delta.upserts.length + delta.removals.length > 0) deltas.push({ name: pool.name ?? "", ...delta });
  }
  return deltas;
}

function changesOf(before: Devices, after: Devices): { upserts: Devices; removals: string[] } | undefined {
  const places = new Map(before.map((device, at) => [device.name ?? "", at]));
  if (places.size < before.length) return undefined;
  const upserts: Devices = [];
  const kept = new Set<string>();
  let last = -1;
  for (const device of after) {
    const name = device.name ?? "";
    const place = places.get(name);
    if (kept.has(name)) return undefined;
    kept.add(name);
    if (place === undefined) last = before.length;
    else if (place < last) return undefined;
    else last = place;
    if (place === undefined || !isDeepStrictEqual(before[place], device)) upserts.push(device);
  }
  const removals = [...places.keys()].filter((name) => !kept.has(name));
  return (upserts.length + removals.length) * 2 > after.length ? undefined : { upserts, removals };
}
