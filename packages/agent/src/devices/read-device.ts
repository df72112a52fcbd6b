import type { BinaryReader } from "@bufbuild/protobuf/wire";
import type {
  CounterConsumption,
  CounterSet,
  Counters,
  Device,
  DeviceAttribute,
  DeviceCapacity,
  DeviceTaint,
  Int64,
  NodeAllocatableResource,
  RequestPolicy,
} from "./model.ts";

/*
 * Reads devices of proto/nodekeeper/devices/v1alpha1/api.proto from their bytes into the model, without objects in
 * between: the first message of a driver with many devices is to be published soon. What it does not know it names,
 * where generated code would drop it in silence.
 */

/** Collects the paths of fields that are not known, such as "capacity.17". */
export class UnknownFields {
  readonly #most: number;
  readonly #within: string[] = [];
  #found: string[] = [];

  /** @param most how many are collected */
  constructor(most = 20) {
    this.#most = most;
  }

  /** What was collected since the last call. */
  take(): string[] {
    const found = this.#found;
    if (found.length > 0) this.#found = [];
    this.#within.length = 0;
    return found;
  }

  enter(field: string): void {
    this.#within.push(field);
  }

  leave(): void {
    this.#within.pop();
  }

  add(number: number): void {
    const path = [...this.#within, number].join(".");
    if (this.#found.length < this.#most && !this.#found.includes(path)) this.#found.push(path);
  }
}

type Read<Into> = (reader: BinaryReader, into: Into, unknown: UnknownFields) => void;
/** By field number. `readOne` is for a list of numbers that come one by one. */
export type Fields<Into> = readonly (
  | { wireType: number; read: Read<Into>; readOne?: Read<Into> }
  | undefined
)[];

const VARINT = 0;
const BYTES = 2;

/** Reads one Device, from where the reader is to `end`. Throws where the bytes are no message. */
export function readDevice(reader: BinaryReader, end: number, unknown: UnknownFields): Device {
  const device: Device & Foreign = { name: "" };
  readFields(reader, end, device, deviceFields, unknown);
  return device;
}

/** Reads one CounterSet, from where the reader is to `end`. Throws where the bytes are no message. */
export function readCounterSet(reader: BinaryReader, end: number, unknown: UnknownFields): CounterSet {
  const set: CounterSet = { name: "", counters: {} };
  readFields(reader, end, set, counterSetFields, unknown);
  return set;
}

/** Reads every field of a message that ends at `end`; of fields in another form than theirs, none is known. */
export function readFields<Into>(
  reader: BinaryReader,
  end: number,
  into: Into,
  fields: Fields<Into>,
  unknown: UnknownFields,
): void {
  while (reader.pos < end) {
    const tag = reader.uint32();
    const number = tag >>> 3;
    const field = fields[number];
    const wireType = tag & 7;
    const read = field?.wireType === wireType ? field.read : wireType === VARINT && field?.readOne;
    if (read) {
      read(reader, into, unknown);
      continue;
    }
    if (number === 0) throw new RangeError("field number 0");
    unknown.add(number);
    reader.skip(wireType, number);
  }
  if (reader.pos > end) throw new RangeError("a field is longer than its message");
}

function text<Into>(set: (into: Into, value: string) => void): Fields<Into>[number] {
  return { wireType: BYTES, read: (reader, into) => set(into, reader.string()) };
}

function flag<Into>(set: (into: Into, value: boolean) => void): Fields<Into>[number] {
  return { wireType: VARINT, read: (reader, into) => set(into, reader.bool()) };
}

function int<Into>(set: (into: Into, value: Int64) => void): Fields<Into>[number] {
  return { wireType: VARINT, read: (reader, into) => set(into, int64(reader)) };
}

function message<Into, Value>(
  path: string,
  make: () => Value,
  fields: Fields<Value>,
  set: (into: Into, value: Value) => void,
): Fields<Into>[number] {
  return {
    wireType: BYTES,
    read(reader, into, unknown) {
      const end = reader.uint32() + reader.pos;
      const value = make();
      unknown.enter(path);
      readFields(reader, end, value, fields, unknown);
      unknown.leave();
      set(into, value);
    },
  };
}

// The key and the value of a map's entry, both with their bytes' length before them.
const KEY = 10;
const VALUE = 18;

function map<Into, Value>(
  path: string,
  make: () => Value,
  readValue: (reader: BinaryReader, value: Value, unknown: UnknownFields) => void,
  set: (into: Into, key: string, value: Value) => void,
): Fields<Into>[number] {
  return {
    wireType: BYTES,
    read(reader, into, unknown) {
      const end = reader.uint32() + reader.pos;
      let key = "";
      const value = make();
      unknown.enter(path);
      while (reader.pos < end) {
        const tag = reader.uint32();
        if (tag === KEY) key = reader.string();
        else if (tag === VALUE) readValue(reader, value, unknown);
        else {
          if (tag >>> 3 === 0) throw new RangeError("field number 0");
          unknown.add(tag >>> 3);
          reader.skip(tag & 7, tag >>> 3);
        }
      }
      if (reader.pos > end) throw new RangeError("an entry is longer than its map");
      unknown.leave();
      set(into, key, value);
    },
  };
}

/** The value of a map's entry, a message itself. */
function entry<Value>(fields: Fields<Value>) {
  return (reader: BinaryReader, value: Value, unknown: UnknownFields): void =>
    readFields(reader, reader.uint32() + reader.pos, value, fields, unknown);
}

const quantity = (reader: BinaryReader, into: { value: string }): void => {
  into.value = reader.string();
};

function int64(reader: BinaryReader): Int64 {
  // Next to all are small: four bytes hold 28 bits, and no sign.
  const start = reader.pos;
  const low = reader.uint32();
  if (reader.pos - start <= 4) return low;
  reader.pos = start;
  return toInt64(reader.int64());
}

/** The integer as a number where that is exact. */
export function toInt64(value: bigint | string): Int64 {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : BigInt(value);
}

/** The list with one more; the same list where there is one. */
export function appended<Value>(list: Value[] | undefined, value: Value): Value[] {
  if (!list) return [value];
  list.push(value);
  return list;
}

// A key may be "__proto__".
function put<Value>(record: Record<string, Value> | undefined, key: string, value: Value) {
  if (record && key !== "__proto__") {
    record[key] = value;
    return record;
  }
  return Object.fromEntries([...Object.entries(record ?? {}), [key, value]]);
}

const listOf = <Value>(read: (reader: BinaryReader) => Value, wireType: number): Fields<Value[]> => [
  undefined,
  {
    wireType: BYTES,
    read(reader, into) {
      if (wireType === BYTES) {
        into.push(read(reader));
        return;
      }
      const end = reader.uint32() + reader.pos;
      while (reader.pos < end) into.push(read(reader));
    },
    ...(wireType === VARINT && { readOne: (reader, into) => void into.push(read(reader)) }),
  },
];
const list = <Into, Value>(
  path: string,
  fields: Fields<Value[]>,
  set: (into: Into, value: Value[]) => void,
): Fields<Into>[number] => message<Into, Value[]>(path, () => [], fields, set);

const texts = listOf((reader) => reader.string(), BYTES);

const attributeFields: Fields<DeviceAttribute> = [
  undefined,
  flag((into, value) => {
    into.bool = value;
  }),
  int((into, value) => {
    into.int = value;
  }),
  text((into, value) => {
    into.string = value;
  }),
  text((into, value) => {
    into.version = value;
  }),
  list(
    "bools",
    listOf((reader) => reader.bool(), VARINT),
    (into, value) => {
      into.bools = value;
    },
  ),
  list("ints", listOf(int64, VARINT), (into, value) => {
    into.ints = value;
  }),
  list("strings", texts, (into, value) => {
    into.strings = value;
  }),
  list("versions", texts, (into, value) => {
    into.versions = value;
  }),
];

type Range = NonNullable<RequestPolicy["validRange"]>;
const rangeFields: Fields<Range> = [
  undefined,
  text((into, value) => {
    if (value !== "") into.min = value;
  }),
  text((into, value) => {
    if (value !== "") into.max = value;
  }),
  text((into, value) => {
    if (value !== "") into.step = value;
  }),
];

const policyFields: Fields<RequestPolicy> = [
  undefined,
  text((into, value) => {
    if (value !== "") into.default = value;
  }),
  text((into, value) => {
    into.validValues = appended(into.validValues, value);
  }),
  message<RequestPolicy, Range>(
    "validRange",
    () => ({}),
    rangeFields,
    (into, value) => {
      into.validRange = value;
    },
  ),
];

const capacityFields: Fields<DeviceCapacity> = [
  undefined,
  text((into, value) => {
    into.value = value;
  }),
  message<DeviceCapacity, RequestPolicy>(
    "requestPolicy",
    () => ({}),
    policyFields,
    (into, value) => {
      into.requestPolicy = value;
    },
  ),
];

const taintFields: Fields<DeviceTaint> = [
  undefined,
  text((into, value) => {
    into.key = value;
  }),
  text((into, value) => {
    if (value !== "") into.value = value;
  }),
  text((into, value) => {
    into.effect = value;
  }),
  int((into, value) => {
    if (Number(value) !== 0) into.timeAdded = wholeSeconds(Number(value));
  }),
];

const consumptionFields: Fields<CounterConsumption> = [
  undefined,
  text((into, value) => {
    into.counterSet = value;
  }),
  counters((into) => into),
  text((into, value) => {
    into.compatibilityGroups = appended(into.compatibilityGroups, value);
  }),
];

const counterSetFields: Fields<CounterSet> = [
  undefined,
  text((into, value) => {
    into.name = value;
  }),
  counters((into) => into),
];

function counters<Into>(of: (into: Into) => { counters: Counters }): Fields<Into>[number] {
  return map(
    "counters",
    () => ({ value: "" }),
    quantity,
    (into: Into, key, value) => {
      of(into).counters = put(of(into).counters, key, value);
    },
  );
}

type Mapping = NonNullable<NodeAllocatableResource["mapping"]>;
type Overhead = NonNullable<NodeAllocatableResource["overhead"]>;
const nodeAllocatableFields: Fields<NodeAllocatableResource> = [
  undefined,
  message<NodeAllocatableResource, Mapping>(
    "mapping",
    () => ({}),
    [
      undefined,
      text((into, value) => {
        if (value !== "") into.capacityKey = value;
      }),
      text((into, value) => {
        if (value !== "") into.capacityMultiplier = value;
      }),
      text((into, value) => {
        if (value !== "") into.deviceMultiplier = value;
      }),
    ],
    (into, value) => {
      into.mapping = value;
    },
  ),
  message<NodeAllocatableResource, Overhead>(
    "overhead",
    () => ({}),
    [
      undefined,
      text((into, value) => {
        if (value !== "") into.perPod = value;
      }),
      text((into, value) => {
        if (value !== "") into.perContainer = value;
      }),
    ],
    (into, value) => {
      into.overhead = value;
    },
  ),
];

/** What a device may set to be used from other nodes; validation refuses it. */
export interface Foreign {
  ofOtherNodes?: boolean;
}

const ofOtherNodes: Read<Device & Foreign> = (reader, into) => {
  into.ofOtherNodes = true;
  reader.skip(BYTES);
};

const deviceFields: Fields<Device & Foreign> = [
  undefined,
  text((into, value) => {
    into.name = value;
  }),
  map(
    "attributes",
    (): DeviceAttribute => ({}),
    entry(attributeFields),
    (into, key, value) => {
      into.attributes = put(into.attributes, key, value);
    },
  ),
  map(
    "capacity",
    (): DeviceCapacity => ({ value: "" }),
    entry(capacityFields),
    (into, key, value) => {
      into.capacity = put(into.capacity, key, value);
    },
  ),
  message<Device, DeviceTaint>(
    "taints",
    () => ({ key: "", effect: "" }),
    taintFields,
    (into, value) => {
      into.taints = appended(into.taints, value);
    },
  ),
  message<Device, CounterConsumption>(
    "consumesCounters",
    () => ({ counterSet: "", counters: {} }),
    consumptionFields,
    (into, value) => {
      into.consumesCounters = appended(into.consumesCounters, value);
    },
  ),
  { wireType: BYTES, read: ofOtherNodes },
  { wireType: BYTES, read: ofOtherNodes },
  flag((into, value) => {
    if (value) into.ofOtherNodes = true;
  }),
  flag((into, value) => {
    if (value) into.bindsToNode = true;
  }),
  text((into, value) => {
    into.bindingConditions = appended(into.bindingConditions, value);
  }),
  text((into, value) => {
    into.bindingFailureConditions = appended(into.bindingFailureConditions, value);
  }),
  flag((into, value) => {
    if (value) into.allowMultipleAllocations = true;
  }),
  undefined,
  map(
    "nodeAllocatableResources",
    (): NodeAllocatableResource => ({}),
    entry(nodeAllocatableFields),
    (into, key, value) => {
      into.nodeAllocatableResources = put(into.nodeAllocatableResources, key, value);
    },
  ),
];

// A time that no calendar knows stays as its number, for validation to refuse.
function wholeSeconds(milliseconds: number): string {
  const date = new Date(Math.floor(milliseconds / 1000) * 1000);
  return Number.isNaN(date.getTime()) ? `${milliseconds}` : date.toISOString().replace(".000Z", "Z");
}
