import { completed, isDnsLabel, quote, StepMeter, type Steps } from "@nodekeeper/core/lib";
import { Canonical } from "./canonical.ts";
import type { CheckedCounterSet, CheckedDevice, CheckedPools } from "./checked.ts";
import { contextOf, type ExaminedDevice, examineDevice } from "./examine-device.ts";
import { isDriverName, isIdentifier, isPoolName } from "./field-names.ts";
import type { CounterSet, DevicePool, DeviceProblem, PoolFields } from "./model.ts";
import { checkCounters } from "./validate-device.ts";

export interface ValidationOptions {
  /** Maximum number of devices per driver. Further devices are quarantined. */
  maxDevices: number;
  /** Maximum number of pools per driver. */
  maxPools: number;
  /** Maximum number of problems reported. Further quarantined devices are only counted. */
  maxProblems: number;
}

export const defaultValidation: ValidationOptions = {
  maxDevices: 50_000,
  maxPools: 1_000,
  maxProblems: 1_000,
};

const MAX_QUOTED_FIELD = 200;
const COUNTERS_IN_STEP = 1_000;
const skippable = ["NodePrepareResources", "NodeUnprepareResources", "*"];

/** Receives problems. */
export type ProblemSink = (problem: DeviceProblem) => void;

/**
 * Checks pools before they are sent. An invalid device is quarantined and reported; the others are published. A pool
 * whose name or fields are invalid is refused entirely. If devices or pools share a name, the first is kept. If counter
 * sets share a name, none is kept, because it is unknown which one a device refers to.
 */
export function checkPools(
  driver: string,
  pools: readonly DevicePool[],
  options: ValidationOptions = defaultValidation,
): CheckedPools {
  const canonical = new Canonical();
  const answer: CheckedPools = { pools: [], problems: [], quarantined: 0 };
  const sink: ProblemSink = (problem) => {
    if (answer.problems.length < options.maxProblems) answer.problems.push(problem);
  };
  const names = new Set<string>();
  let room = options.maxDevices;
  for (const [at, { name, fields = {}, devices, sharedCounters }] of pools.entries()) {
    const refusal = refusalOfPool({ name, fields }, names, at, options);
    if (refusal) {
      sink({ pool: shortened(name), ...refusal });
      answer.quarantined += devices.length;
      continue;
    }
    names.add(name);
    const counterSets = completed(checkingCounterSets(name, sharedCounters, canonical, sink));
    const context = contextOf(driver, fields, counterSets);
    const examined = devices.map((device) => examineDevice(device, context, canonical));
    const checked = checkDevices(name, examined, room, sink);
    room -= checked.length;
    answer.pools.push({ name, fields, devices: checked, counterSets });
    answer.quarantined += devices.length - checked.length;
  }
  return answer;
}

/**
 * Returns why a pool is refused entirely; undefined if it is not.
 * @param names of the pools before it
 * @param at its index among the driver's pools
 */
export function refusalOfPool(
  { name, fields }: { name: string; fields: PoolFields },
  names: ReadonlySet<string>,
  at: number,
  { maxPools }: ValidationOptions,
): { field: string; message: string } | undefined {
  const { partitionTypeAttribute: attribute, skipNodeOperations: skipped = [] } = fields;
  if (names.has(name)) return { field: "name", message: "duplicates the name of an earlier pool" };
  if (at >= maxPools) return { field: "name", message: `more than ${maxPools} pools` };
  if (!isPoolName(name)) {
    return { field: "name", message: `${quote(name)} does not consist of DNS subdomains joined by '/'` };
  }
  if (attribute !== undefined && !isFullyQualified(attribute)) {
    const message = `${quote(attribute)} is not "<domain>/<C identifier>"`;
    return { field: "partitionTypeAttribute", message };
  }
  const unknown = skipped.find((operation) => !skippable.includes(operation));
  const field = "skipNodeOperations";
  if (unknown !== undefined)
    return { field, message: `${quote(unknown)} is not one of ${skippable.join(", ")}` };
  if (new Set(skipped).size < skipped.length) return { field, message: "must not contain duplicates" };
  const isAlone = skipped.includes("NodePrepareResources") && skipped.length === 1;
  return isAlone ? { field, message: "NodePrepareResources needs NodeUnprepareResources" } : undefined;
}

/** Returns the valid devices, at most `room`. Reports the others. */
export function checkDevices(
  pool: string,
  examined: readonly ExaminedDevice[],
  room: number,
  sink: ProblemSink,
): CheckedDevice[] {
  const devices: CheckedDevice[] = [];
  const names = new Set<string>();
  for (const { device, name, problems } of examined) {
    for (const { field, message } of problems) {
      sink({ pool, device: shortened(name), field: shortened(field), message });
    }
    if (!device) continue;
    const refusal = names.has(name)
      ? "duplicates the name of an earlier device"
      : devices.length >= room
        ? "the driver has more devices than allowed"
        : undefined;
    if (refusal) {
      sink({ pool, device: name, field: "name", message: refusal });
      continue;
    }
    names.add(name);
    devices.push(device);
  }
  return devices;
}

/** Returns the valid counter sets. Reports the others. */
export function* checkingCounterSets(
  pool: string,
  sets: readonly CounterSet[],
  canonical: Canonical,
  sink: ProblemSink,
): Steps<CheckedCounterSet[]> {
  const meter = new StepMeter(COUNTERS_IN_STEP);
  const counts = new Map<string, number>();
  for (const { name } of sets) counts.set(name, (counts.get(name) ?? 0) + 1);
  const checked: CheckedCounterSet[] = [];
  for (const set of sets) {
    if (meter.spend(1 + Object.keys(set.counters).length)) yield;
    let isBad = false;
    const report = (field: string, message: string) => {
      isBad = true;
      sink({ pool, field: shortened(`sharedCounters[${set.name}].${field}`), message });
    };
    if (!isDnsLabel(set.name)) report("name", `${quote(set.name)} is not a DNS label`);
    checkCounters(set.counters, "counters", report);
    const count = counts.get(set.name)!;
    if (count > 1) report("name", `${count} counter sets have this name`);
    if (!isBad) checked.push({ set, fingerprint: canonical.counterSetFingerprint(set) });
  }
  return checked;
}

function isFullyQualified(name: string): boolean {
  const slash = name.indexOf("/");
  return isDriverName(name.slice(0, Math.max(0, slash))) && isIdentifier(name.slice(slash + 1));
}

function shortened(text: string): string {
  return text.length > MAX_QUOTED_FIELD ? `${text.slice(0, MAX_QUOTED_FIELD)}...` : text;
}
