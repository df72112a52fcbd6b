import { quote } from "../lib/index.ts";
import { Canonical } from "./canonical.ts";
import type { CheckedCounterSet, CheckedDevice, CheckedPool, CheckedPools } from "./checked.ts";
import { contextOf, type DeviceContext, type ExaminedDevice, examineDevice } from "./examine-device.ts";
import { isDnsLabel, isPoolName } from "./field-names.ts";
import type { DevicePool, DeviceProblem } from "./model.ts";
import { checkCounters } from "./validate-device.ts";
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

const MAX_QUOTED_FIELD = 200;

/** A pool whose devices may be in another form. */
export type PoolOf<Raw> = Omit<DevicePool, "devices"> & { devices: Raw[] };

/**
 * Checks pools before they are sent. A bad device is held back and named, the others go on; a pool whose own name or
 * choice of nodes is bad is refused whole. Of devices, counter sets or pools of one name the first is kept.
 */
export function checkPools(
  pools: readonly DevicePool[],
  options: ValidationOptions = defaultValidation,
): CheckedPools {
  const canonical = new Canonical();
  return checkPoolsBy(
    pools,
    options,
    canonical,
    (_, context) => (device) => examineDevice(device, context, canonical),
  );
}

/** `checkPools` for devices in any form, given what examines those of a pool. */
export function checkPoolsBy<Raw>(
  pools: readonly PoolOf<Raw>[],
  options: ValidationOptions,
  canonical: Canonical,
  examinerOf: (pool: PoolOf<Raw>, context: DeviceContext) => (device: Raw) => ExaminedDevice,
): CheckedPools {
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
    const counterSets = checkCounterSets(pool, canonical, tell);
    const examine = examinerOf(pool, contextOf(pool, counterSets));
    const devices = checkDevices(pool, room, examine, tell);
    const checked: CheckedPool = { name: pool.name, nodes: pool.nodes, devices, counterSets };
    room -= checked.devices.length;
    answer.pools.push(checked);
    answer.quarantined += pool.devices.length - checked.devices.length;
  }
  return answer;
}

function refusalOf(pool: PoolOf<unknown>): { field: string; message: string } | undefined {
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

function checkDevices<Raw>(
  pool: PoolOf<Raw>,
  room: number,
  examine: (device: Raw) => ExaminedDevice,
  tell: (problem: DeviceProblem) => void,
): CheckedDevice[] {
  const devices: CheckedDevice[] = [];
  const names = new Set<string>();
  for (const raw of pool.devices) {
    const { device, name, problems } = examine(raw);
    for (const { field, message } of problems) {
      tell({ pool: pool.name, device: shortened(name), field: shortened(field), message });
    }
    if (!device) continue;
    const refusal = names.has(name)
      ? "a device of this name is there already"
      : devices.length >= room
        ? "the driver has more devices than allowed"
        : undefined;
    if (refusal) {
      tell({ pool: pool.name, device: name, field: "name", message: refusal });
      continue;
    }
    names.add(name);
    devices.push(device);
  }
  return devices;
}

function checkCounterSets(
  pool: PoolOf<unknown>,
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

function shortened(text: string): string {
  return text.length > MAX_QUOTED_FIELD ? `${text.slice(0, MAX_QUOTED_FIELD)}...` : text;
}
