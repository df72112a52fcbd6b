import { bindingMutations } from "./binding.ts";
import { decisionMutations } from "./decision.ts";
import { deviceMutations } from "./devices.ts";
import { evictionMutations } from "./eviction.ts";
import { hostMutations } from "./host.ts";
import type { Mutation } from "./mutation.ts";
import { poolMutations } from "./pools.ts";
import { reportingMutations } from "./reporting.ts";
import { stateMutations } from "./state.ts";

export type { Mutation } from "./mutation.ts";

/** Changes of one place each. */
export const mutations: readonly Mutation[] = [
  ...decisionMutations,
  ...evictionMutations,
  ...reportingMutations,
  ...deviceMutations,
  ...bindingMutations,
  ...poolMutations,
  ...hostMutations,
  ...stateMutations,
];
