import { type Feature, isList } from "../model/feature-bits.ts";
import { type Device, isBeyondNode, type PoolFields } from "../model/model.ts";

/** A field that an API server stores only if a feature is enabled. */
export interface GatedField {
  /** "bindingConditions", "attributes[cores]" */
  field: string;
  feature: Feature;
  /**
   * Whether claims would be allocated the device on different terms than its driver reports if the field is dropped:
   * despite a taint, without its binding conditions, on no particular node, without counting what it consumes, or
   * entirely instead of a share.
   */
  isUnsafe: boolean;
}

interface Rule {
  feature: Feature;
  /** Returns the device's fields that need the feature, unsafe ones first. */
  fieldsOf: (device: Device, pool: PoolFields) => Omit<GatedField, "feature">[];
}

const unsafe = (field: string, isSet: unknown) => (isSet ? [{ field, isUnsafe: true }] : []);
const safe = (field: string, isSet: unknown) => (isSet ? [{ field, isUnsafe: false }] : []);

// Source: the ResourceSlice strategy of kube-apiserver, which drops fields of disabled features.
const rules: readonly Rule[] = [
  {
    feature: "DRADeviceTaints",
    fieldsOf: ({ taints = [] }) => {
      const isRepelling = taints.some(({ effect }) => effect !== "None");
      return [...unsafe("taints", isRepelling), ...safe("taints", taints.length > 0 && !isRepelling)];
    },
  },
  {
    feature: "DRAPartitionableDevices",
    fieldsOf: ({ consumesCounters }) => unsafe("consumesCounters", consumesCounters?.length),
  },
  {
    feature: "DRADeviceCompatibilityGroups",
    fieldsOf: ({ consumesCounters = [] }) =>
      unsafe(
        "consumesCounters.compatibilityGroups",
        consumesCounters.some(({ compatibilityGroups }) => compatibilityGroups?.length),
      ),
  },
  {
    feature: "DRADeviceBindingConditions",
    fieldsOf: ({ bindsToNode, bindingConditions, bindingFailureConditions }, pool) => [
      ...unsafe("bindingConditions", bindingConditions?.length),
      ...unsafe("bindsToNode", bindsToNode && isBeyondNode(pool)),
      ...safe("bindingFailureConditions", bindingFailureConditions?.length),
      // The allocation of a device of the node names the node anyway.
      ...safe("bindsToNode", bindsToNode && !isBeyondNode(pool)),
    ],
  },
  {
    feature: "DRAConsumableCapacity",
    fieldsOf: ({ allowMultipleAllocations, capacity = {} }) => [
      ...unsafe("allowMultipleAllocations", allowMultipleAllocations),
      ...Object.entries(capacity).flatMap(([name, { requestPolicy }]) =>
        safe(`capacity[${name}].requestPolicy`, requestPolicy),
      ),
    ],
  },
  {
    feature: "DRANodeAllocatableResources",
    // Without it the scheduler counts the node's CPU and memory twice: as the device and as the node's allocatable
    // resources.
    fieldsOf: ({ nodeAllocatableResources }) => unsafe("nodeAllocatableResources", nodeAllocatableResources),
  },
  {
    feature: "DRAListTypeAttributes",
    // A selector that reads the attribute does not match.
    fieldsOf: ({ attributes = {} }) =>
      Object.entries(attributes).flatMap(([name, attribute]) =>
        safe(`attributes[${name}]`, isList(attribute)),
      ),
  },
];

/** Returns the fields of a pool's device that need these features; by default, any feature. */
export function gatedFields(device: Device, pool: PoolFields, features?: ReadonlySet<Feature>): GatedField[] {
  return rules
    .filter(({ feature }) => !features || features.has(feature))
    .flatMap(({ feature, fieldsOf }) => fieldsOf(device, pool).map((found) => ({ ...found, feature })));
}
