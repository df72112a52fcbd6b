import { quote } from "../lib/index.ts";
import type { Canonical } from "./canonical.ts";
import type { CheckedCounterSet, CheckedDevice } from "./checked.ts";
import type { CounterSet, Device, PoolNodes } from "./model.ts";
import type { Report } from "./validate-capacity.ts";
import { checkDevice } from "./validate-device.ts";

/** What a device's rules depend on beside the device. */
export interface DeviceContext {
  perDeviceNodes: boolean;
  counterSets: ReadonlyMap<string, CounterSet>;
  /** Equal for contexts in which every device fares alike. */
  key: string;
}

export interface ExaminedDevice {
  name: string;
  /** Absent where the device breaks a rule. */
  device?: CheckedDevice;
  /** The first few. */
  problems: { field: string; message: string }[];
}

const MAX_PROBLEMS = 5;

export function contextOf(pool: { nodes: PoolNodes }, counterSets: CheckedCounterSet[]): DeviceContext {
  const perDeviceNodes = pool.nodes.kind === "perDevice";
  return {
    perDeviceNodes,
    counterSets: new Map(counterSets.map(({ set }) => [set.name, set])),
    key: JSON.stringify([perDeviceNodes, counterSets.map(({ fingerprint }) => fingerprint)]),
  };
}

/** Checks one device by every rule that speaks of it alone. */
export function examineDevice(device: Device, context: DeviceContext, canonical: Canonical): ExaminedDevice {
  const examined: ExaminedDevice = { name: device.name, problems: [] };
  const report: Report = (field, message) => {
    if (examined.problems.length < MAX_PROBLEMS) examined.problems.push({ field, message });
  };
  checkDevice(device, context.perDeviceNodes, canonical, report);
  checkReferences(device, context.counterSets, report);
  if (examined.problems.length > 0) return examined;
  const fingerprint = canonical.deviceFingerprint(device);
  return { ...examined, device: { device, fingerprint, advanced: isAdvanced(device) } };
}

// The API server can't see this across slices, but the scheduler gives up on a pool where it is broken.
function checkReferences(device: Device, known: ReadonlyMap<string, CounterSet>, report: Report): void {
  for (const [at, { counterSet, counters }] of (device.consumesCounters ?? []).entries()) {
    const set = known.get(counterSet);
    if (!set)
      report(`consumesCounters[${at}].counterSet`, `the pool has no counter set ${quote(counterSet)}`);
    for (const name of set ? Object.keys(counters) : []) {
      if (Object.hasOwn(set!.counters, name)) continue;
      report(`consumesCounters[${at}].counters`, `counter set ${quote(counterSet)} has no ${quote(name)}`);
    }
  }
}

function isAdvanced({ taints, consumesCounters, attributes }: Device): boolean {
  if (taints?.length || consumesCounters?.length) return true;
  for (const name in attributes) {
    const { bools, ints, strings, versions } = attributes[name]!;
    if (bools || ints || strings || versions) return true;
  }
  return false;
}
