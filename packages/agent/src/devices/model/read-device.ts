import type { BinaryReader } from "@bufbuild/protobuf/wire";
import type {
  CounterConsumption,
  CounterSet,
  Counters,
  Device,
  DeviceAttribute,
  DeviceCapacity,
  DeviceTaint,
  NodeAllocatableResource,
  RequestPolicy,
} from "./model.ts";
import {
  appended,
  BYTES,
  entry,
  type Fields,
  flag,
  int,
  int64,
  list,
  listOf,
  map,
  message,
  put,
  type Read,
  readFields,
  text,
  texts,
  type UnknownFields,
  VARINT,
} from "./read-fields.ts";

/*
 * Decodes devices of proto/nodekeeper/devices/v1alpha1/api.proto directly into the model, so that the first message of
 * a driver with many devices is published soon.
 */

/** Reads one Device, from the reader's position to `end`. Throws if the bytes are not a message. */
export function readDevice(reader: BinaryReader, end: number, unknown: UnknownFields): Device {
  const device: Device & Foreign = { name: "" };
  readFields(reader, end, device, deviceFields, unknown);
  return device;
}

/** Reads one CounterSet, from the reader's position to `end`. Throws if the bytes are not a message. */
export function readCounterSet(reader: BinaryReader, end: number, unknown: UnknownFields): CounterSet {
  const set: CounterSet = { name: "", counters: {} };
  readFields(reader, end, set, counterSetFields, unknown);
  return set;
}

const quantity = (reader: BinaryReader, into: { value: string }): void => {
  into.value = reader.string();
};

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

/** Set by fields that make a device usable from other nodes. Validation refuses it. */
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

// A time out of range is returned as a number, which validation refuses.
function wholeSeconds(milliseconds: number): string {
  const date = new Date(Math.floor(milliseconds / 1000) * 1000);
  return Number.isNaN(date.getTime()) ? `${milliseconds}` : date.toISOString().replace(".000Z", "Z");
}
