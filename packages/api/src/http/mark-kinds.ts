/** Kinds of marks. The spellings are stored in the database. */
export const markKinds = [
  "agentStarted",
  "agentStartedAfterKill",
  "agentStopped",
  "roundsPaused",
  "pluginRegistered",
  "pluginLost",
  "pluginRefused",
  "conditionSet",
  "conditionCleared",
  "taintAdded",
  "taintChanged",
  "taintRemoved",
  "evictionSelected",
  "evictionDryRun",
  "evictionWithdrawn",
  "evictionEnded",
  "evictionRefused",
] as const;
export type MarkKind = (typeof markKinds)[number];
