export { type PodDisk, PodDisks, type PodDisksOptions } from "./pod-disk.ts";
export { PodMemories, type PodMemoriesOptions, type PodMemory } from "./pod-memory.ts";
export {
  type Amounts,
  amountsOf,
  memoryRequest,
  observedDetails,
  podRequests,
  sum,
  unitsOf,
  type WholePods,
} from "./pod-resources.ts";
