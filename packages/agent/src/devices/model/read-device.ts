import type {
  CounterConsumption,
  CounterSet,
  Device,
  DeviceAttribute,
  DeviceCapacity,
  DeviceTaint,
  NodeAllocatableResource,
  NodeSelector,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  RequestPolicy,
} from "./model.ts";
import {
  BYTES,
  entry,
  type FieldReader,
  type Fields,
  flag,
  int64,
  list,
  map,
  message,
  messages,
  optionalText,
  readFields,
  text,
  texts,
  VARINT,
} from "./read-fields.ts";

/*
 * Decodes devices of proto/nodekeeper/devices/v1alpha2/api.proto directly into the model, so that the first message of
 * a driver with many devices is published soon.
 */

/** Reads one Device, from the reader's position to `end`. Throws if the bytes are not a message. */
export function readDevice(reader: FieldReader, end: number): Device {
  const device: Device = { name: "" };
  readFields(reader, end, device, deviceFields);
  return device;
}

/** Reads one CounterSet, from the reader's position to `end`. Throws if the bytes are not a message. */
export function readCounterSet(reader: FieldReader, end: number): CounterSet {
  const set: CounterSet = { name: "", counters: {} };
  readFields(reader, end, set, counterSetFields);
  return set;
}

const readText = (reader: FieldReader): string => reader.string();
const readBool = (reader: FieldReader): boolean => reader.bool();

const attributeFields: Fields<DeviceAttribute> = [
  undefined,
  {
    wireType: VARINT,
    read(reader, into) {
      into.bool = reader.bool();
    },
  },
  {
    wireType: VARINT,
    read(reader, into) {
      into.int = int64(reader);
    },
  },
  text("string"),
  text("version"),
  list("bools", readBool, VARINT),
  list("ints", int64, VARINT),
  list("strings", readText, BYTES),
  list("versions", readText, BYTES),
];

const rangeFields: Fields<NonNullable<RequestPolicy["validRange"]>> = [
  undefined,
  optionalText("min"),
  optionalText("max"),
  optionalText("step"),
];

const policyFields: Fields<RequestPolicy> = [
  undefined,
  optionalText("default"),
  texts("validValues"),
  message("validRange", () => ({}), rangeFields),
];

const capacityFields: Fields<DeviceCapacity> = [
  undefined,
  text("value"),
  message("requestPolicy", (): RequestPolicy => ({}), policyFields),
];

const taintFields: Fields<DeviceTaint> = [
  undefined,
  text("key"),
  optionalText("value"),
  text("effect"),
  {
    wireType: VARINT,
    read(reader, into) {
      const milliseconds = Number(int64(reader));
      if (milliseconds !== 0) into.timeAdded = wholeSeconds(milliseconds);
    },
  },
];

const counters = map(
  "counters",
  () => ({ value: "" }),
  (reader, into) => {
    into.value = reader.string();
  },
);

const consumptionFields: Fields<CounterConsumption> = [
  undefined,
  text("counterSet"),
  counters,
  texts("compatibilityGroups"),
];

const counterSetFields: Fields<CounterSet> = [undefined, text("name"), counters];

const nodeAllocatableFields: Fields<NodeAllocatableResource> = [
  undefined,
  message("mapping", () => ({}), [
    undefined,
    optionalText("capacityKey"),
    optionalText("capacityMultiplier"),
    optionalText("deviceMultiplier"),
  ]),
  message("overhead", () => ({}), [undefined, optionalText("perPod"), optionalText("perContainer")]),
];

const requirementFields: Fields<NodeSelectorRequirement> = [
  undefined,
  text("key"),
  text("operator"),
  texts("values"),
];
const requirement = (): NodeSelectorRequirement => ({ key: "", operator: "" });

export const nodeSelectorFields: Fields<NodeSelector> = [
  undefined,
  messages("nodeSelectorTerms", (): NodeSelectorTerm => ({}), [
    undefined,
    messages("matchExpressions", requirement, requirementFields),
    messages("matchFields", requirement, requirementFields),
  ]),
];

const deviceFields: Fields<Device> = [
  undefined,
  text("name"),
  map("attributes", (): DeviceAttribute => ({}), entry(attributeFields)),
  map("capacity", (): DeviceCapacity => ({ value: "" }), entry(capacityFields)),
  messages("taints", (): DeviceTaint => ({ key: "", effect: "" }), taintFields),
  messages(
    "consumesCounters",
    (): CounterConsumption => ({ counterSet: "", counters: {} }),
    consumptionFields,
  ),
  optionalText("nodeName"),
  message("nodeSelector", (): NodeSelector => ({ nodeSelectorTerms: [] }), nodeSelectorFields),
  flag("allNodes"),
  flag("bindsToNode"),
  texts("bindingConditions"),
  texts("bindingFailureConditions"),
  flag("allowMultipleAllocations"),
  undefined,
  map("nodeAllocatableResources", (): NodeAllocatableResource => ({}), entry(nodeAllocatableFields)),
];

// A time out of range is returned as a number, which validation refuses.
function wholeSeconds(milliseconds: number): string {
  const date = new Date(Math.floor(milliseconds / 1000) * 1000);
  return Number.isNaN(date.getTime()) ? `${milliseconds}` : date.toISOString().replace(".000Z", "Z");
}
