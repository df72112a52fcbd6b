export { type PodDisk, PodDisks, type PodDisksOptions } from "./pod-disk.ts";
export { PodMemories, type PodMemoriesOptions, type PodMemory } from "./pod-memory.ts";
export {
  type Amounts,
  amountsOf,
  memoryRequest,
  podRequests,
  sum,
  unitsOf,
} from "./pod-resources.ts";
export { type PodUsage, PodUsages, type PodUsagesOptions } from "./pod-usages.ts";
