export type { AddedTaints } from "./added-taints.ts";
export type {
  CheckedCounterSet,
  CheckedDevice,
  CheckedPool,
  CheckedPools,
  StoredDevice,
  StoredSlice,
} from "./checked.ts";
export { decodeNamedResources, poolsOfNamedResources } from "./decode-named-resources.ts";
export {
  type DeviceSettings,
  DeviceSync,
  type DeviceSyncOptions,
} from "./device-sync.ts";
export { type Feature, featuresIn } from "./feature-bits.ts";
export { type DroppedField, droppedFields, withoutFeatures } from "./features.ts";
export { limits } from "./limits.ts";
export { deviceNameOf, identifierOf, oldNameOf } from "./mapped-names.ts";
export type * from "./model.ts";
export { type CheckedModels, checkModels, modelsOfPools } from "./models.ts";
export { type PlanInput, PlanMemory, type PoolPlan, planSlices, type SliceWrite } from "./plan.ts";
export {
  decodeModel,
  encodeModel,
  type ModelPlan,
  type ModelPlanInput,
  planModels,
  type StoredModel,
  storedModel,
} from "./plan-models.ts";
export { PoolReader, type PoolReaderOptions } from "./pool-reader.ts";
export { type DeviceMessage, readMessage } from "./read-message.ts";
export type { DriverStatus, SliceStatus } from "./status.ts";
export { checkPools, defaultValidation, type ValidationOptions } from "./validate.ts";
export { decodeSpec, encodeSlice, type SliceVersion, sliceVersions, storedSlice } from "./versions.ts";
