import { quote } from "@nodekeeper/core/lib";
import type { Canonical } from "./canonical.ts";
import type { CheckedCounterSet, CheckedDevice } from "./checked.ts";
import { checkedDevice } from "./checked-device.ts";
import type { CounterSet, Device, PoolFields } from "./model.ts";
import type { Report } from "./validate-capacity.ts";
import { checkDevice } from "./validate-device.ts";
import { checkNodesOfDevice } from "./validate-nodes.ts";

/** What the rules for a device depend on besides the device. */
export interface DeviceContext {
  /** The domain of names that have none. */
  driver: string;
  counterSets: ReadonlyMap<string, CounterSet>;
  partitionTypeAttribute: string | undefined;
  /** Whether each device has its own nodes. */
  perDeviceNodeSelection: boolean;
  /** Equal for contexts in which every device has the same result. */
  key: string;
}

export interface ExaminedDevice {
  name: string;
  /** Undefined if the device is invalid. */
  device?: CheckedDevice;
  /** The first few problems. For a valid device, its fields that are not published. */
  problems: readonly { field: string; message: string }[];
}

const MAX_PROBLEMS = 5;
// Shared, because nearly all devices have none.
const noProblems: ExaminedDevice["problems"] = [];

export function contextOf(
  driver: string,
  { partitionTypeAttribute, perDeviceNodeSelection = false }: PoolFields,
  counterSets: CheckedCounterSet[],
): DeviceContext {
  return {
    driver,
    counterSets: new Map(counterSets.map(({ set }) => [set.name, set])),
    partitionTypeAttribute,
    perDeviceNodeSelection,
    key: JSON.stringify([
      driver,
      partitionTypeAttribute,
      perDeviceNodeSelection,
      counterSets.map(({ fingerprint }) => fingerprint),
    ]),
  };
}

/** Checks one device by all rules that don't involve other devices. */
export function examineDevice(device: Device, context: DeviceContext, canonical: Canonical): ExaminedDevice {
  const { name } = device;
  let problems: { field: string; message: string }[] | undefined;
  const report: Report = (field, message) => {
    problems ??= [];
    if (problems.length < MAX_PROBLEMS) problems.push({ field, message });
  };
  checkDevice(device, canonical, report);
  checkNodesOfDevice(device, context.perDeviceNodeSelection, report);
  if (device.consumesCounters) checkConsumption(device, context, report);
  if (problems) return { name, problems };
  const kept = withoutShadowed(device, context.driver, report);
  return { name, device: checkedDevice(kept, canonical), problems: problems ?? noProblems };
}

// The API server does not check this across slices, but the scheduler skips a pool that violates it.
function checkConsumption(
  { consumesCounters = [], attributes = {} }: Device,
  { driver, counterSets, partitionTypeAttribute }: DeviceContext,
  report: Report,
): void {
  for (const [at, { counterSet, counters }] of consumesCounters.entries()) {
    const set = counterSets.get(counterSet);
    if (!set)
      report(`consumesCounters[${at}].counterSet`, `the pool has no valid counter set ${quote(counterSet)}`);
    for (const name of set ? Object.keys(counters) : []) {
      if (Object.hasOwn(set!.counters, name)) continue;
      report(`consumesCounters[${at}].counters`, `counter set ${quote(counterSet)} has no ${quote(name)}`);
    }
  }
  if (partitionTypeAttribute === undefined) return;
  // The API server looks up the full name first, then the name alone if the domain is the driver's.
  const names = [partitionTypeAttribute];
  if (partitionTypeAttribute.startsWith(`${driver}/`))
    names.push(partitionTypeAttribute.slice(driver.length + 1));
  const name = names.find((candidate) => Object.hasOwn(attributes, candidate));
  if (name === undefined) {
    report("attributes", `needs ${quote(partitionTypeAttribute)}, the pool's partition type`);
  } else if (attributes[name]!.string === undefined) {
    report(`attributes[${name}]`, "must be a string, because it is the pool's partition type");
  }
}

// A name without a domain belongs to the driver's, so "model" and "<driver>/model" are the same attribute. The API
// server prefers the explicit name; which one a claim's CEL expression sees is undefined.
function withoutShadowed(device: Device, driver: string, report: Report): Device {
  const attributes = shadowedIn(device.attributes, driver);
  const capacity = shadowedIn(device.capacity, driver);
  if (attributes === nothing && capacity === nothing) return device;
  const refuse = (field: string, name: string) =>
    report(`${field}[${name}]`, `is a duplicate of "${driver}/${name}", which is published instead`);
  for (const name of attributes) refuse("attributes", name);
  for (const name of capacity) refuse("capacity", name);
  return {
    ...device,
    ...(device.attributes && { attributes: omit(device.attributes, attributes) }),
    ...(device.capacity && { capacity: omit(device.capacity, capacity) }),
  };
}

const nothing: readonly string[] = [];

function shadowedIn(record: Record<string, unknown> | undefined, driver: string): readonly string[] {
  let names = nothing;
  for (const name in record) {
    if (name.startsWith(driver) && name[driver.length] === "/") {
      const bare = name.slice(driver.length + 1);
      if (Object.hasOwn(record, bare)) names = [...names, bare];
    }
  }
  return names;
}

function omit<Value>(record: Record<string, Value>, names: readonly string[]): Record<string, Value> {
  return Object.fromEntries(Object.entries(record).filter(([name]) => !names.includes(name)));
}
