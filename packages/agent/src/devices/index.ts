// The types of devices, from a driver's message to a ResourceSlice:
//
// DeviceMessage     a driver's message: its pools still bytes, or a `DeviceDelta` of what it has reported
// Device            a device as its driver reports it, and as resource.k8s.io/v1 has it; `DevicePool` a pool of them
// CheckedDevice     a device that breaks no rule, with its fingerprint; `CheckedPools` all that can be published
// DeviceProblem     a device, or a pool, that is quarantined: the field and why
// Feature           a part of a slice that the API server drops while its feature gate is off
// AddedTaints       taints that the agent adds to those of the driver
// StoredSlice       a ResourceSlice as the API server has it; a `ForeignSlice` is another client's
// PoolPlan          what is to be deleted and written of one pool, each a `SliceWrite`
// NamedResources    the same of resource.k8s.io/v1alpha2, Kubernetes 1.30: `StoredModel`, `ModelPlan`
// DriverStatus      a driver, its devices and slices as `nodekeeper devices` shows them
//
// `model/` has the contents of messages and slices, decoded and checked; `plan/` decides, pure; `sync/` has streams, sessions
// with the API server, the queue of writes, and health.

export type {
  CheckedCounterSet,
  CheckedDevice,
  CheckedPool,
  CheckedPools,
  StoredDevice,
  StoredSlice,
} from "./model/checked.ts";
export { decodeNamedResources, poolsOfNamedResources } from "./model/decode-named-resources.ts";
export { type Feature, featuresIn } from "./model/feature-bits.ts";
export { limits } from "./model/limits.ts";
export { deviceNameOf, identifierOf, oldNameOf } from "./model/mapped-names.ts";
export type * from "./model/model.ts";
export { PoolReader, type PoolReaderOptions } from "./model/pool-reader.ts";
export { type DeviceMessage, readMessage } from "./model/read-message.ts";
export { decodeModel, encodeModel, type StoredModel, storedModel } from "./model/stored-model.ts";
export { checkPools, defaultValidation, type ValidationOptions } from "./model/validate.ts";
export { decodeSpec, encodeSlice, type SliceVersion, sliceVersions, storedSlice } from "./model/versions.ts";
export type { AddedTaints } from "./plan/added-taints.ts";
export { type DroppedField, droppedFields, withoutFeatures } from "./plan/features.ts";
export { type CheckedModels, checkModels, modelsOfPools } from "./plan/models.ts";
export { type PlanInput, type PoolPlan, planSlices, type SliceWrite } from "./plan/plan.ts";
export { PlanMemory } from "./plan/plan-memory.ts";
export { type ModelPlan, type ModelPlanInput, planModels } from "./plan/plan-models.ts";
export {
  type DeviceSettings,
  DeviceSync,
  type DeviceSyncOptions,
} from "./sync/device-sync.ts";
export type { DriverStatus, PublishedDevice, SliceStatus } from "./sync/status.ts";
