// Without imports, because the page loads it first.

/** Responses that a stream sends whole when they change, by path. */
export const stateTopics = [
  "node",
  "plugins",
  "objects",
  "devices",
  "claims",
  "eviction/node",
  "eviction/budgets",
  "eviction/candidates",
] as const;
export type StateTopic = (typeof stateTopics)[number];

/** All topics of a stream, including those of disabled parts. */
export const streamTopics: ReadonlySet<string> = new Set([
  "events",
  "rounds",
  "marks",
  "readings",
  ...stateTopics,
]);
