// The types of devices, from a driver's message to a ResourceSlice:
//
// DeviceMessage     a driver's message: its pools as bytes
// Device            a device as in resource.k8s.io/v1, as its driver reports it; `DevicePool`: a pool of devices
// CheckedDevice     a valid device with its fingerprint; `CheckedPools`: everything that can be published
// DeviceProblem     a device, or a pool, that is quarantined: the field and why
// Feature           a part of a slice that the API server drops while its feature gate is off
// AddedTaints       taints that the agent adds to those of the driver
// StoredSlice       a ResourceSlice as the API server has it; `ForeignSlice`: another client's
// PoolPlan          deletions and writes for one pool; `SliceWrite`: one write
// NamedResources    the equivalent in resource.k8s.io/v1alpha2 (Kubernetes 1.30), with `StoredModel` and `ModelPlan`
// DriverStatus      a driver, its devices and slices as `nodekeeper devices` shows them
//
// `model/` decodes and checks messages and slices; `plan/` decides, pure; `sync/` has streams, sessions with the API
// server, the queue of writes, and health.

export type {
  CheckedCounterSet,
  CheckedDevice,
  CheckedPool,
  CheckedPools,
  StoredDevice,
  StoredSlice,
} from "./model/checked.ts";
export { contractOf, serviceOf } from "./model/contract.ts";
export { decodeNamedResources, poolsOfNamedResources } from "./model/decode-named-resources.ts";
export { type Feature, featuresIn } from "./model/feature-bits.ts";
export { isDriverName } from "./model/field-names.ts";
export { limits } from "./model/limits.ts";
export { deviceNameOf, identifierOf, oldNameOf } from "./model/mapped-names.ts";
export type * from "./model/model.ts";
export { PoolReader, type PoolReaderOptions } from "./model/pool-reader.ts";
export { type DeviceMessage, readMessage } from "./model/read-message.ts";
export { decodeModel, encodeModel, type StoredModel, storedModel } from "./model/stored-model.ts";
export { checkPools, defaultValidation, type ValidationOptions } from "./model/validate.ts";
export { decodeSpec, encodeSlice, type SliceVersion, sliceVersions, storedSlice } from "./model/versions.ts";
export type { AddedTaints, TaintReasons } from "./plan/added-taints.ts";
export { type DroppedField, droppedFields, withoutFeatures } from "./plan/features.ts";
export { type CheckedModels, checkModels, modelsOfPools } from "./plan/models.ts";
export { type PlanInput, type PoolPlan, planSlices, type SliceWrite } from "./plan/plan.ts";
export { PlanMemory } from "./plan/plan-memory.ts";
export { type ModelPlan, type ModelPlanInput, planModels } from "./plan/plan-models.ts";
export { leaseName } from "./sync/cluster-pools.ts";
export type { DeviceSettings } from "./sync/context.ts";
export { DeviceSync, type DeviceSyncOptions } from "./sync/device-sync.ts";
export type { PresentProblem } from "./sync/driver-feedback.ts";
export { DriverNotice, type NoticeTarget } from "./sync/driver-notice.ts";
export type { DriverProblem } from "./sync/driver-problems.ts";
export type { DriverPreparation } from "./sync/drivers.ts";
export { releaseSlices } from "./sync/release-slices.ts";
export { type DriverStatus, departedDriver, type PublishedDevice } from "./sync/status.ts";
