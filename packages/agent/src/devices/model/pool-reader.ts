import { completed, messageOf, StepMeter, type Steps } from "@nodekeeper/core/lib";
import { Canonical } from "./canonical.ts";
import type { CheckedPool, CheckedPools } from "./checked.ts";
import { contextOf, type DeviceContext, type ExaminedDevice, examineDevice } from "./examine-device.ts";
import { type CounterSet, type DeviceProblem, isBeyondNode } from "./model.ts";
import { PoolBytes } from "./pool-bytes.ts";
import { headOf, headSizeOf, type PoolHead } from "./pool-head.ts";
import { readCounterSet, readDevice } from "./read-device.ts";
import { FieldReader } from "./read-fields.ts";
import type { DeviceMessage } from "./read-message.ts";
import { type PoolParts, readPool } from "./read-pool.ts";
import {
  checkDevices,
  checkingCounterSets,
  defaultValidation,
  type ProblemSink,
  refusalOfPool,
  type ValidationOptions,
} from "./validate.ts";
import { problemOfPoolNodes } from "./validate-nodes.ts";

export interface PoolReaderOptions {
  driver: string;
  nodeName: string;
  /** Whether the driver may have pools beyond the node. Default: it may not. */
  allowsBeyondNode?: boolean;
  validation?: ValidationOptions;
}

/** The result of reading one pool's bytes. */
interface PoolState {
  name: string;
  /** Undefined if its devices are not contiguous or too many. */
  bytes: PoolBytes | undefined;
  context: DeviceContext;
  examined: ExaminedDevice[];
  pool: CheckedPool;
  problems: DeviceProblem[];
  quarantined: number;
}

/** A pool that is refused entirely. */
interface Refusal {
  problem: DeviceProblem;
  quarantined: number;
}

/**
 * Reads the messages of one driver, one after another. Nearly all devices are unchanged since the previous message: if
 * only some bytes of a pool differ, only the devices in that range are decoded and checked again. A device that cannot
 * be decoded is quarantined, as an invalid one is.
 */
export class PoolReader {
  readonly #options: PoolReaderOptions;
  readonly #validation: ValidationOptions;
  readonly #canonical = new Canonical();
  #states: (PoolState | Refusal)[] = [];
  #unknown: readonly string[] = [];

  constructor(options: PoolReaderOptions) {
    this.#options = options;
    this.#validation = options.validation ?? defaultValidation;
  }

  /** Returns the checked pools of a message, which has the entire state. */
  read(message: Pick<DeviceMessage, "pools" | "otherPools" | "unknown">): CheckedPools {
    return completed(this.steps(message));
  }

  /**
   * `read` in steps of a few milliseconds each, so that other work can run in between.
   * @param onHead receives the head of the first pool, if it is large, before its other devices are read
   */
  *steps(
    message: Pick<DeviceMessage, "pools" | "otherPools" | "unknown">,
    onHead?: (head: PoolHead) => void,
  ): Steps<CheckedPools> {
    const before = this.#states;
    const names = new Set<string>();
    let room = this.#validation.maxDevices;
    const states: (PoolState | Refusal)[] = [];
    for (const [at, bytes] of message.pools.entries()) {
      const known = before[at];
      const again = known && "pool" in known ? this.#again(known, bytes, names, room) : undefined;
      const state = again ?? (yield* this.#whole(bytes, names, room, at, at === 0 ? onHead : undefined));
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

  // Handles a pool of which at most some devices differ, all of them valid. Returns undefined otherwise.
  #again(state: PoolState, bytes: Uint8Array, names: Set<string>, room: number): PoolState | undefined {
    if (!state.bytes || names.has(state.name) || state.pool.devices.length > room) return undefined;
    const next = nextOf(state.bytes, bytes);
    if (!next) return undefined;
    const examined = [];
    const reader = new FieldReader(bytes);
    for (let at = next.from; at < next.to; at++) {
      const { from, to } = next.pool.range(at);
      examined.push(this.#examineField(reader, from, to, state.context));
    }
    const changed = this.#replaced(state, examined, next.from);
    return changed && { ...changed, bytes: next.pool };
  }

  *#whole(
    bytes: Uint8Array,
    names: ReadonlySet<string>,
    room: number,
    at: number,
    onHead?: (head: PoolHead) => void,
  ): Steps<PoolState | Refusal> {
    const problems: DeviceProblem[] = [];
    const { maxDevices } = this.#validation;
    const reader = new FieldReader(bytes);
    const parts = readPool(reader, maxDevices);
    const { starts, ends, fields } = parts;
    if (parts.error) {
      const message = `number ${at} of the message is not a pool: ${messageOf(parts.error)}`;
      return { problem: { pool: "", field: "pools", message }, quarantined: starts.length };
    }
    const meter = stepMeter();
    let unknown = reader.unknown.take();
    const name = parts.name || this.#options.nodeName;
    const sink: ProblemSink = (problem) => {
      if (problems.length < this.#validation.maxProblems) problems.push(problem);
    };
    const refusal =
      this.#refusalOfNodes(parts) ?? refusalOfPool({ name, fields }, names, at, this.#validation);
    if (refusal) return { problem: { pool: name.slice(0, 253), ...refusal }, quarantined: starts.length };
    const sets: CounterSet[] = [];
    try {
      for (const { from, to } of parts.sets) {
        if (meter.spend(costOf(to - from))) yield;
        checkSize(to - from);
        reader.pos = from;
        reader.unknown.enter("sharedCounters");
        sets.push(readCounterSet(reader, to));
        unknown = unknown.concat(reader.unknown.take());
      }
    } catch (error) {
      const message = `counter set ${sets.length}: ${messageOf(error)}`;
      return { problem: { pool: name, field: "sharedCounters", message }, quarantined: starts.length };
    }
    for (const field of new Set(unknown)) sink({ pool: name, field, message: unknownField });
    const counterSets = yield* checkingCounterSets(name, sets, this.#canonical, sink);
    const context = contextOf(this.#options.driver, fields, counterSets);
    const recall = this.#recall(name, context);
    const examined: ExaminedDevice[] = [];
    const headSize = onHead && sets.length === 0 ? headSizeOf(starts.length) : undefined;
    for (const [at, from] of starts.entries()) {
      const to = ends[at]!;
      if (meter.spend(costOf(to - from))) yield;
      examined.push(recall?.(bytes, from, to) ?? this.#examineField(reader, from, to, context));
      if (examined.length !== headSize) continue;
      const head = headOf({ name, fields }, examined, starts.length);
      if (head) onHead?.(head);
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

  #refusalOfNodes({ name, fields }: PoolParts): { field: string; message: string } | undefined {
    const { nodeName, allowsBeyondNode } = this.#options;
    if (!isBeyondNode(fields) || allowsBeyondNode) return problemOfPoolNodes(name, fields, nodeName);
    const message = "refused: the setting devices.clusterPools.drivers does not name the driver";
    return { field: "nodes", message };
  }

  // Returns a lookup of devices that were in the pool before, at any position. It is cheapest if the order is
  // unchanged.
  #recall(name: string, context: DeviceContext) {
    const known = this.#states.find((state) => "pool" in state && state.name === name) as
      | PoolState
      | undefined;
    if (!known?.bytes || known.context.key !== context.key) return undefined;
    const { bytes, examined } = known;
    let next = 0;
    let places: Map<string, number> | undefined;
    return (message: Uint8Array, from: number, to: number): ExaminedDevice | undefined => {
      const device = message.subarray(from, to);
      if (next < bytes.size && Buffer.compare(bytes.device(next), device) === 0) return examined[next++];
      places ??= new Map(examined.map((_, at) => [textOf(bytes.device(at)), at]));
      const place = places.get(textOf(device));
      // Most likely the device changed in place, and the next one follows it.
      next = (place ?? next) + 1;
      return place === undefined ? undefined : examined[place];
    };
  }

  // Returns the state with devices replaced from an index, if all are valid and keep their names. Reuses the list of
  // the previous state, which is large and long-lived.
  #replaced(state: PoolState, examined: readonly ExaminedDevice[], from: number): PoolState | undefined {
    if (examined.length === 0) return state;
    // Otherwise indices of checked devices differ from those of all devices.
    if (state.quarantined > 0 || state.problems.length > 0) return undefined;
    for (const [at, { device, name, problems }] of examined.entries())
      if (!device || problems.length > 0 || name !== state.examined[from + at]!.name) return undefined;
    const devices = [...state.pool.devices];
    for (const [at, device] of examined.entries()) {
      state.examined[from + at] = device;
      devices[from + at] = device.device!;
    }
    return { ...state, pool: { ...state.pool, devices } };
  }

  #examineField(reader: FieldReader, from: number, to: number, context: DeviceContext): ExaminedDevice {
    reader.pos = from;
    // Skip its tag and length.
    reader.uint32();
    reader.uint32();
    return this.#examine(reader, to, context);
  }

  #examine(reader: FieldReader, end: number, context: DeviceContext): ExaminedDevice {
    reader.unknown.take();
    try {
      checkSize(end - reader.pos);
      const device = readDevice(reader, end);
      const examined = examineDevice(device, context, this.#canonical);
      const unknown = reader.unknown.take();
      if (unknown.length === 0) return examined;
      const problems = unknown.map((field) => ({ field, message: unknownField }));
      return { ...examined, problems: [...examined.problems, ...problems] };
    } catch (error) {
      return { name: "", problems: [{ field: "", message: `not a device: ${messageOf(error)}` }] };
    }
  }
}

// Returns undefined also if the bytes are not a valid message: reading them entirely finds the reason.
function nextOf(before: PoolBytes, bytes: Uint8Array): ReturnType<PoolBytes["next"]> {
  try {
    return before.next(bytes);
  } catch {
    return undefined;
  }
}

const unknownField = "is unknown to this version of the agent and is not published";

// A step reads about a hundred devices of typical size, or one of the largest.
const COST_OF_STEP = 30_000;
const COST_OF_DEVICE = 150;
// Several times the size of the largest valid device or counter set.
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
