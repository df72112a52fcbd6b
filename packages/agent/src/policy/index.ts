// Eviction policies in CEL. Terms:
// policy: one entry of a policy file, which runs as the eviction plugin policy-<name>.
// expression: CEL text in a field of a policy, compiled; cost: its number of steps in the worst case.
// node, pod: the variables of expressions; part: a group of fields of `node` with the time it was read.
// verdict: whether a policy's threshold is met; minimumReclaim keeps it met until enough is reclaimed.
// scene: a node and its pods from a file or a recorded round, for `policy test`.
export { HostNodeReadings, type HostNodeReadingsOptions, podUsageOf } from "./host-node-readings.ts";
export { loadPolicies } from "./load-policies.ts";
export type { Policy } from "./policy.ts";
export { createPolicyMetrics, type PolicyMetrics } from "./policy-metrics.ts";
export { describeProblem, type LoadedPolicies, type PolicyProblem } from "./policy-problem.ts";
export { PolicySource } from "./policy-source.ts";
export type { Scene } from "./scene.ts";
export { readSceneFile, type SceneFile, sceneOfFile } from "./scene-file.ts";
export { sceneOfRecord } from "./scene-of-record.ts";
export { type PolicyTrial, tryPolicy } from "./try-policy.ts";
