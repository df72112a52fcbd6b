/**
 * Why no pod may be selected for a confirmed hard threshold. The spellings are stored in records.
 *
 * - `failed`, `late`: GetTopEvictionPods failed, or exceeded its deadline.
 * - `namedNone`: the plugin named no pod.
 * - `namedIneligible`: the plugin named only pods that can't be evicted, in fewer than three consecutive rounds so far.
 * - `fallbackOff`, `scopeUnknown`: like `namedIneligible`, and the ranking must not select another pod: the fallback is
 *   turned off for the plugin, or it is unknown which pods belong to the scope.
 * - `noEligiblePod`, `nodeLimit`: no candidate can be evicted now, or the node's limit is reached.
 */
export type UnservedReason = (typeof unservedReasons)[number];
export const unservedReasons = [
  "failed",
  "late",
  "namedNone",
  "namedIneligible",
  "fallbackOff",
  "scopeUnknown",
  "noEligiblePod",
  "nodeLimit",
] as const;
