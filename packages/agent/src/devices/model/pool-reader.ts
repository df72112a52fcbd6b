import { BinaryReader } from "@bufbuild/protobuf/wire";
import { completed, messageOf, NodekeeperError, quote, StepMeter, type Steps } from "@nodekeeper/core/lib";
import { Canonical } from "./canonical.ts";
import type { CheckedPool, CheckedPools } from "./checked.ts";
import { contextOf, type DeviceContext, type ExaminedDevice, examineDevice } from "./examine-device.ts";
import type { CounterSet, DeviceProblem } from "./model.ts";
import { PoolBytes } from "./pool-bytes.ts";
import { readCounterSet, readDevice } from "./read-device.ts";
import { UnknownFields } from "./read-fields.ts";
import type { DeviceDelta, DeviceMessage, PoolDelta } from "./read-message.ts";
import { readPool } from "./read-pool.ts";
import {
  checkDevices,
  checkingCounterSets,
  defaultValidation,
  type ProblemSink,
  refusalOfPool,
  type ValidationOptions,
} from "./validate.ts";

export interface PoolReaderOptions {
  driver: string;
  nodeName: string;
  validation?: ValidationOptions;
}

/** What has been made of one pool's bytes. */
interface PoolState {
  name: string;
  /** Undefined once a delta has changed the pool. */
  bytes: PoolBytes | undefined;
  context: DeviceContext;
  examined: ExaminedDevice[];
  pool: CheckedPool;
  problems: DeviceProblem[];
  quarantined: number;
  /** By the names of devices, for deltas. */
  places?: Map<string, number>;
}

/** A pool that is refused whole. */
interface Refusal {
  problem: DeviceProblem;
  quarantined: number;
}

/**
 * Reads the messages of one driver, one after another. Next to all devices are what they were in the message before:
 * where only some bytes of a pool differ, only the devices there are read and checked again. A device whose bytes make
 * no sense is quarantined like any invalid one.
 */
export class PoolReader {
  readonly #options: PoolReaderOptions;
  readonly #validation: ValidationOptions;
  readonly #canonical = new Canonical();
  readonly #unknownFields = new UnknownFields();
  #states: (PoolState | Refusal)[] = [];
  #unknown: readonly string[] = [];

  constructor(options: PoolReaderOptions) {
    this.#options = options;
    this.#validation = options.validation ?? defaultValidation;
  }

  /** The pools of a message with the whole state, checked. */
  read(message: Pick<DeviceMessage, "pools" | "otherPools" | "unknown">): CheckedPools {
    return completed(this.steps(message));
  }

  /** `read` in steps of a few milliseconds each, for other work to be done in between. */
  *steps(message: Pick<DeviceMessage, "pools" | "otherPools" | "unknown">): Steps<CheckedPools> {
    const before = this.#states;
    const names = new Set<string>();
    let room = this.#validation.maxDevices;
    const states: (PoolState | Refusal)[] = [];
    for (const [at, bytes] of message.pools.entries()) {
      const known = before[at];
      const again = known && "pool" in known ? this.#again(known, bytes, names, room) : undefined;
      const state = again ?? (yield* this.#whole(bytes, before, names, room, at));
      if ("pool" in state) {
        names.add(state.name);
        room -= state.pool.devices.length;
      }
      states.push(state);
      yield;
    }
    if (message.otherPools > 0) {
      const reason = `${message.otherPools} pools beyond the first ${message.pools.length} are not read`;
      states.push({ problem: { pool: "", field: "pools", message: reason }, quarantined: 0 });
    }
    this.#states = states;
    this.#unknown = message.unknown;
    return this.#answer();
  }

  /**
   * The pools after a change of them. Throws `invalid` for a pool that is not there, and where devices would become
   * more than are allowed; the pools are as before then.
   */
  apply(delta: DeviceDelta): CheckedPools {
    return completed(this.applySteps(delta));
  }

  /** `apply` in steps of a few milliseconds each, for other work to be done in between. */
  *applySteps(delta: DeviceDelta): Steps<CheckedPools> {
    const states = [...this.#states];
    const most = Math.max(this.#validation.maxDevices, countOf(states));
    for (const change of delta.pools) {
      const name = change.name || this.#options.nodeName;
      const at = states.findIndex((state) => "pool" in state && state.name === name);
      const state = states[at];
      if (!state || !("pool" in state)) {
        throw new NodekeeperError("invalid", `the delta changes pool ${quote(name)}, which is not there`, {
          id: "NK1502",
        });
      }
      states[at] = yield* this.#changed(state, change, delta.pools.length === 1);
      if (countOf(states) > most)
        throw new NodekeeperError("invalid", `with the delta the driver has more than ${most} devices`, {
          id: "NK1502",
        });
    }
    this.#states = states;
    return this.#answer();
  }

  #answer(): CheckedPools {
    const answer: CheckedPools = { pools: [], problems: [], quarantined: 0 };
    const sink = (problem: DeviceProblem) => {
      if (answer.problems.length < this.#validation.maxProblems) answer.problems.push(problem);
    };
    for (const field of this.#unknown) sink({ pool: "", field, message: unknownField });
    for (const state of this.#states) {
      answer.quarantined += state.quarantined;
      if (!("pool" in state)) {
        sink(state.problem);
        continue;
      }
      answer.pools.push(state.pool);
      for (const problem of state.problems) sink(problem);
    }
    return answer;
  }

  // Where at most some devices differ from before, and all of them are well.
  #again(state: PoolState, bytes: Uint8Array, names: Set<string>, room: number): PoolState | undefined {
    if (!state.bytes || names.has(state.name) || state.pool.devices.length > room) return undefined;
    const next = nextOf(state.bytes, bytes);
    if (!next) return undefined;
    const examined = [];
    const reader = new BinaryReader(bytes);
    for (let at = next.from; at < next.to; at++) {
      const { from, to } = next.pool.range(at);
      examined.push(this.#examineField(reader, from, to, state.context));
    }
    const changed = this.#replaced(state, examined, (_, at) => next.from + at, true);
    return changed && { ...changed, bytes: next.pool };
  }

  *#whole(
    bytes: Uint8Array,
    before: readonly (PoolState | Refusal)[],
    names: ReadonlySet<string>,
    room: number,
    at: number,
  ): Steps<PoolState | Refusal> {
    const problems: DeviceProblem[] = [];
    const { maxDevices } = this.#validation;
    this.#unknownFields.take();
    const reader = new BinaryReader(bytes);
    const parts = readPool(reader, maxDevices, this.#unknownFields);
    const { starts, ends, fields } = parts;
    if (parts.error) {
      const message = `number ${at} of the message is not a pool: ${messageOf(parts.error)}`;
      return { problem: { pool: "", field: "pools", message }, quarantined: starts.length };
    }
    const meter = stepMeter();
    let unknown = this.#unknownFields.take();
    const name = parts.name || this.#options.nodeName;
    const sink: ProblemSink = (problem) => {
      if (problems.length < this.#validation.maxProblems) problems.push(problem);
    };
    const refusal = parts.ofOtherNodes
      ? { field: "nodes", message: "refused: the agent publishes devices of its own node only" }
      : refusalOfPool(name, fields, names, at, this.#validation);
    if (refusal) return { problem: { pool: name.slice(0, 253), ...refusal }, quarantined: starts.length };
    const sets: CounterSet[] = [];
    try {
      for (const { from, to } of parts.sets) {
        if (meter.spend(costOf(to - from))) yield;
        checkSize(to - from);
        reader.pos = from;
        this.#unknownFields.enter("sharedCounters");
        sets.push(readCounterSet(reader, to, this.#unknownFields));
        unknown = unknown.concat(this.#unknownFields.take());
      }
    } catch (error) {
      const message = `counter set ${sets.length}: ${messageOf(error)}`;
      return { problem: { pool: name, field: "sharedCounters", message }, quarantined: starts.length };
    }
    for (const field of new Set(unknown)) sink({ pool: name, field, message: unknownField });
    const counterSets = yield* checkingCounterSets(name, sets, this.#canonical, sink);
    const context = contextOf(this.#options.driver, fields, counterSets);
    const recall = this.#recall(before, name, context);
    const examined: ExaminedDevice[] = [];
    for (const [at, from] of starts.entries()) {
      const to = ends[at]!;
      if (meter.spend(costOf(to - from))) yield;
      examined.push(recall?.(bytes, from, to) ?? this.#examineField(reader, from, to, context));
    }
    if (parts.others > 0) {
      const message = `${parts.others} devices beyond the first ${maxDevices} are not read`;
      sink({ pool: name, field: "devices", message });
    }
    const checked = checkDevices(name, examined, room, sink);
    return {
      name,
      bytes: parts.others > 0 ? undefined : PoolBytes.of(bytes),
      context,
      examined,
      pool: { name, fields, devices: checked, counterSets },
      problems,
      quarantined: starts.length + parts.others - checked.length,
    };
  }

  // Devices that were in the pool before, wherever; cheapest in the order that they had.
  #recall(before: readonly (PoolState | Refusal)[], name: string, context: DeviceContext) {
    const known = before.find((state) => "pool" in state && state.name === name) as PoolState | undefined;
    if (!known?.bytes || known.context.key !== context.key) return undefined;
    const { bytes, examined } = known;
    let next = 0;
    let places: Map<string, number> | undefined;
    return (message: Uint8Array, from: number, to: number): ExaminedDevice | undefined => {
      const device = message.subarray(from, to);
      if (next < bytes.size && Buffer.compare(bytes.device(next), device) === 0) return examined[next++];
      places ??= new Map(examined.map((_, at) => [textOf(bytes.device(at)), at]));
      const place = places.get(textOf(device));
      // Most likely it changed where it is, and the one after it is the one after it.
      next = (place ?? next) + 1;
      return place === undefined ? undefined : examined[place];
    };
  }

  // @param isLast nothing after it can fail, and make the state before hold again
  *#changed(state: PoolState, { upserts, removals }: PoolDelta, isLast: boolean): Steps<PoolState> {
    const places = state.places ?? new Map(state.examined.map(({ name }, at) => [name, at]));
    const examined: ExaminedDevice[] = [];
    const meter = stepMeter();
    for (const bytes of upserts) {
      if (meter.spend(costOf(bytes.length))) yield;
      examined.push(this.#examine(new BinaryReader(bytes), bytes.length, state.context));
    }
    if (removals.length === 0 && examined.every(({ name }) => places.has(name))) {
      const changed = this.#replaced(state, examined, ({ name }) => places.get(name)!, isLast);
      if (changed) return { ...changed, bytes: undefined, places };
    }
    const all = [...state.examined];
    for (const device of examined) {
      const place = places.get(device.name);
      if (place === undefined) all.push(device);
      else all[place] = device;
    }
    const removed = new Set(removals);
    const left = all.filter(({ name }) => !removed.has(name));
    const problems: DeviceProblem[] = [];
    const { maxDevices, maxProblems } = this.#validation;
    const devices = checkDevices(state.name, left, maxDevices, (problem) => {
      if (problems.length < maxProblems) problems.push(problem);
    });
    const { places: _, ...rest } = state;
    return {
      ...rest,
      bytes: undefined,
      examined: left,
      pool: { ...state.pool, devices },
      problems,
      quarantined: left.length - devices.length,
    };
  }

  // The state with other devices in the places of some, where all are well and have the names of those before.
  // @param usesUp the state before is not read any more: its list of all devices, large and long-lived, is used again
  #replaced(
    state: PoolState,
    examined: readonly ExaminedDevice[],
    placeOf: (device: ExaminedDevice, at: number) => number,
    usesUp: boolean,
  ): PoolState | undefined {
    if (examined.length === 0) return state;
    // Otherwise the places among checked devices are others than among all.
    if (state.quarantined > 0 || state.problems.length > 0) return undefined;
    for (const [at, { device, name, problems }] of examined.entries()) {
      const before = state.examined[placeOf(examined[at]!, at)]!;
      if (!device || problems.length > 0 || name !== before.name) return undefined;
    }
    const all = usesUp ? state.examined : [...state.examined];
    const devices = [...state.pool.devices];
    for (const [at, device] of examined.entries()) {
      const place = placeOf(device, at);
      all[place] = device;
      devices[place] = device.device!;
    }
    return { ...state, examined: all, pool: { ...state.pool, devices } };
  }

  #examineField(reader: BinaryReader, from: number, to: number, context: DeviceContext): ExaminedDevice {
    reader.pos = from;
    // Its tag and its length.
    reader.uint32();
    reader.uint32();
    return this.#examine(reader, to, context);
  }

  #examine(reader: BinaryReader, end: number, context: DeviceContext): ExaminedDevice {
    this.#unknownFields.take();
    try {
      checkSize(end - reader.pos);
      const device = readDevice(reader, end, this.#unknownFields);
      const examined = examineDevice(device, context, this.#canonical);
      const unknown = this.#unknownFields.take();
      if (unknown.length === 0) return examined;
      const problems = unknown.map((field) => ({ field, message: unknownField }));
      return { ...examined, problems: [...examined.problems, ...problems] };
    } catch (error) {
      return { name: "", problems: [{ field: "", message: `not a device: ${messageOf(error)}` }] };
    }
  }
}

// Undefined also where the bytes are no message any more: reading them whole finds out why.
function nextOf(before: PoolBytes, bytes: Uint8Array): ReturnType<PoolBytes["next"]> {
  try {
    return before.next(bytes);
  } catch {
    return undefined;
  }
}

// Devices that are remembered, quarantined ones included.
function countOf(states: readonly (PoolState | Refusal)[]): number {
  return states.reduce((sum, state) => sum + ("pool" in state ? state.examined.length : 0), 0);
}

const unknownField = "is a field that this version of the agent does not know; it is not published";

// A step reads about a hundred devices of a usual size, or one of the largest.
const COST_OF_STEP = 30_000;
const COST_OF_DEVICE = 150;
// Several times what a device, or a counter set, can have without breaking a rule of the API.
const MOST_BYTES = 64 * 1024;

function stepMeter(): StepMeter {
  return new StepMeter(COST_OF_STEP);
}

function costOf(bytes: number): number {
  return COST_OF_DEVICE + bytes;
}

function checkSize(bytes: number): void {
  if (bytes > MOST_BYTES) throw new RangeError(`${bytes} bytes are more than ${MOST_BYTES}`);
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
}
