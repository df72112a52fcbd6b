import { nodeSummary, plugin, publishedObjects } from "./agent.ts";
import { claims, drivers } from "./devices.ts";
import { nodeExplanation, roundReadings, roundSummary } from "./eviction.ts";
import { lifecycleItem } from "./lifecycle.ts";
import { words } from "./parameters.ts";
import { list, named, nullable, object, optional, text } from "./schema.ts";

/** The path of the stream of server-sent events, below /api/v1/. */
export const STREAM_PATH = "stream";

export const streamSummary =
  "What changes, as server-sent events: ?topics=events,rounds,plugins,...&cursor=<id of the last message>.";

export const streamParameters = {
  topics: words(
    "What to follow, separated by commas; all where it is not given. `events` and `rounds` are sent one by one, with an " +
      "`id` to continue after; other topics are paths of this API, sent whole at the start and whenever they change.",
    300,
  ),
  cursor: words("The `id` of the last message had. The header Last-Event-ID overrides it.", 80),
};

/** The data of each event of the stream, by its name. */
export const streamEvents = named(
  "StreamEvents",
  object(
    {
      open: optional(object({ topics: list(text()) }, "The first message.")),
      events: optional(lifecycleItem),
      snapshot: optional(lifecycleItem),
      rounds: optional(roundSummary),
      node: optional(nodeSummary),
      plugins: optional(list(plugin)),
      objects: optional(publishedObjects),
      devices: optional(drivers),
      claims: optional(claims),
      "eviction/node": optional(nodeExplanation),
      readings: optional(nullable(roundReadings)),
    },
    "The data of each event by the event's name: a message has one of them.",
  ),
);
