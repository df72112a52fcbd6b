import { words } from "./parameters.ts";

/** Path of the stream of server-sent events, below /api/v1/. */
export const STREAM_PATH = "stream";

/** Responses that a stream sends whole when they change, by path. */
export const stateTopics: readonly string[] = [
  "node",
  "plugins",
  "objects",
  "devices",
  "claims",
  "eviction/node",
  "eviction/budgets",
  "eviction/candidates",
];

/** All topics of a stream, including those of disabled parts. */
export const streamTopics: ReadonlySet<string> = new Set([
  "events",
  "rounds",
  "marks",
  "readings",
  ...stateTopics,
]);

export const streamSummary =
  "What changes, as server-sent events: ?topics=events,rounds,plugins,...&cursor=<id of the last message>.";

export const streamParameters = {
  topics: words(
    "What to follow, separated by commas; all where it is not given. `events`, `rounds` and `marks` are sent one by one, with an " +
      "`id` to continue after; other topics are paths of this API, sent whole at the start and whenever they change.",
    300,
  ),
  cursor: words("The `id` of the last message had. The header Last-Event-ID overrides it.", 80),
};
