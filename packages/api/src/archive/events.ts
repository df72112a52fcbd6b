/** The version of the exported records: of their events, attributes and bodies. */
export const SCHEMA_VERSION = 1;

/** The events of exported records, with what they report. docs/archive.md has them. */
export const events = {
  "nodekeeper.eviction.decision":
    "What a round decided about one pod: it was selected, its hard request was refused, its eviction was withdrawn or ended. Body: a round of `PodExplanation`. A refusal or withdrawal that repeats in the next rounds is exported once; again after five minutes without a decision, and after a restart of the agent.",
  "nodekeeper.eviction.condition":
    "A condition of the node was set or cleared. Body: `{kind, condition}` with a condition of `EvictionState`.",
  "nodekeeper.eviction.step":
    "A step of an eviction, such as a request and its response. Body: `EvictionStep`.",
  "nodekeeper.pod.ended":
    "A pod left the node, with its cause and the exits of its containers; again if containers exit later. Body: the line of a pod in `eviction/history`.",
  "nodekeeper.claim":
    "Devices of a ResourceClaim were prepared, are used by other pods, or were unprepared. Body: a claim of `DriverClaims` with its driver, and pods as `PodReference`.",
  "nodekeeper.mark":
    "The agent started or stopped, rounds paused, or a taint of the Node changed. Body: `Mark`.",
  "nodekeeper.gap":
    "Records are missing: `{from, to, why}`, with `records` if they were deleted before they were exported.",
} as const;

export type EventName = keyof typeof events;
