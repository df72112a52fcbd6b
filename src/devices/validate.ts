import { quote } from "../lib/index.ts";
import { Canonical } from "./canonical.ts";
import type { CheckedCounterSet, CheckedDevice, CheckedPool, CheckedPools } from "./checked.ts";
import { isDnsLabel, isPoolName } from "./field-names.ts";
import type { CounterSet, Device, DevicePool, DeviceProblem } from "./model.ts";
import { checkCounters, checkDevice } from "./validate-device.ts";
import { checkNodeSelector } from "./validate-node-selector.ts";

export interface ValidationOptions {
  /** Devices that one driver may have; those beyond are held back. */
  maxDevices: number;
  /** Pools that one driver may have. */
  maxPools: number;
  /** Problems that are told; the rest is only counted. */
  maxProblems: number;
}

export const defaultValidation: ValidationOptions = {
  maxDevices: 50_000,
  maxPools: 1_000,
  maxProblems: 1_000,
};

const MAX_PROBLEMS_PER_DEVICE = 5;
const MAX_QUOTED_FIELD = 200;

/**
 * Checks pools before they are sent. A bad device is held back and named, the others go on; a pool whose own name or
 * choice of nodes is bad is refused whole. Of devices, counter sets or pools of one name the first is kept.
 */
export function checkPools(
  pools: readonly DevicePool[],
  options: ValidationOptions = defaultValidation,
): CheckedPools {
  const canonical = new Canonical();
  const answer: CheckedPools = { pools: [], problems: [], quarantined: 0 };
  const tell = (problem: DeviceProblem) => {
    if (answer.problems.length < options.maxProblems) answer.problems.push(problem);
  };
  const seen = new Set<string>();
  let room = options.maxDevices;
  for (const [at, pool] of pools.entries()) {
    const refusal = seen.has(pool.name)
      ? { field: "name", message: "a pool of this name is there already" }
      : at >= options.maxPools
        ? { field: "name", message: `more than ${options.maxPools} pools` }
        : refusalOf(pool);
    if (refusal) {
      tell({ pool: shortened(pool.name), ...refusal });
      answer.quarantined += pool.devices.length;
      continue;
    }
    seen.add(pool.name);
    const checked = checkPool(pool, room, canonical, tell);
    room -= checked.devices.length;
    answer.pools.push(checked);
    answer.quarantined += pool.devices.length - checked.devices.length;
  }
  return answer;
}

function refusalOf(pool: DevicePool): { field: string; message: string } | undefined {
  if (!isPoolName(pool.name)) {
    return { field: "name", message: `${quote(pool.name)} is not DNS subdomains joined by '/'` };
  }
  if (pool.nodes.kind !== "selector") return undefined;
  let first: { field: string; message: string } | undefined;
  checkNodeSelector(pool.nodes.selector, (field, message) => {
    first ??= { field, message };
  });
  const terms = pool.nodes.selector.nodeSelectorTerms.length;
  if (terms !== 1)
    first ??= { field: "nodeSelector.nodeSelectorTerms", message: `${terms} terms, exactly one is needed` };
  return first;
}

function checkPool(
  pool: DevicePool,
  room: number,
  canonical: Canonical,
  tell: (problem: DeviceProblem) => void,
): CheckedPool {
  const counterSets = checkCounterSets(pool, canonical, tell);
  const known = new Map(counterSets.map(({ set }) => [set.name, set]));
  const perDeviceNodes = pool.nodes.kind === "perDevice";
  const devices: CheckedDevice[] = [];
  const names = new Set<string>();
  for (const device of pool.devices) {
    let problems = 0;
    const report = (field: string, message: string) => {
      if (problems++ >= MAX_PROBLEMS_PER_DEVICE) return;
      tell({ pool: pool.name, device: shortened(device.name), field: shortened(field), message });
    };
    checkDevice(device, perDeviceNodes, report);
    checkReferences(device, known, report);
    if (problems === 0 && names.has(device.name)) report("name", "a device of this name is there already");
    if (problems === 0 && devices.length >= room) report("name", "the driver has more devices than allowed");
    if (problems > 0) continue;
    names.add(device.name);
    devices.push({ device, fingerprint: canonical.deviceFingerprint(device), advanced: isAdvanced(device) });
  }
  return { name: pool.name, nodes: pool.nodes, devices, counterSets };
}

function checkCounterSets(
  pool: DevicePool,
  canonical: Canonical,
  tell: (problem: DeviceProblem) => void,
): CheckedCounterSet[] {
  const kept: CheckedCounterSet[] = [];
  const names = new Set<string>();
  for (const set of pool.sharedCounters) {
    let bad = false;
    const report = (field: string, message: string) => {
      bad = true;
      tell({ pool: pool.name, field: shortened(`sharedCounters[${set.name}].${field}`), message });
    };
    if (!isDnsLabel(set.name)) report("name", `${quote(set.name)} is not a DNS label`);
    checkCounters(set.counters, "counters", report);
    if (!bad && names.has(set.name)) report("name", "a counter set of this name is there already");
    if (bad) continue;
    names.add(set.name);
    kept.push({ set, fingerprint: canonical.counterSetFingerprint(set) });
  }
  return kept;
}

// The API server can't see this across slices, but the scheduler gives up on a pool where it is broken.
function checkReferences(
  device: Device,
  known: ReadonlyMap<string, CounterSet>,
  report: (field: string, message: string) => void,
): void {
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

function shortened(text: string): string {
  return text.length > MAX_QUOTED_FIELD ? `${text.slice(0, MAX_QUOTED_FIELD)}...` : text;
}
