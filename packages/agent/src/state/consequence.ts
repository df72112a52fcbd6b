/**
 * What followed from a round: `none`; `refusal`: a hard request for a pod of the node was refused; `effect`: a pod was
 * selected or withdrawn, an eviction ended, a condition was set or cleared. Stored as 0, 1, 2.
 */
export type Consequence = (typeof consequences)[number];
export const consequences = ["none", "refusal", "effect"] as const;
