import { words } from "./parameters.ts";

/** Path of the stream of server-sent events, below /api/v1/. */
export const STREAM_PATH = "stream";

export const streamSummary =
  "Changes as server-sent events: ?topics=events,rounds,plugins,...&cursor=<id of the last message>.";

export const streamParameters = {
  topics: words(
    "Topics, separated by commas. Default: all. `events`, `rounds` and `marks` are sent one by one, with an " +
      "`id` to continue after; other topics are paths of this API, whose complete responses are sent at the start and whenever they change.",
    300,
  ),
  cursor: words("The `id` of the last message received. The header Last-Event-ID overrides it.", 80),
};
