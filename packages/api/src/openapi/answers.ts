import type { operations } from "../http/index.ts";
import { type AgentConfiguration, configurationInForceSchema } from "../settings/index.ts";
import {
  fieldPage,
  nodeSummary,
  objectContent,
  plugin,
  pluginExchanges,
  publishedObjects,
  version,
} from "./agent.ts";
import { claims, devicePage, drivers } from "./devices.ts";
import {
  evictionPage,
  historyPage,
  historyPods,
  nodeExplanation,
  podExplanation,
  readings,
  recordPage,
  roundReadings,
  roundSummary,
} from "./eviction.ts";
import { candidateCounts, evictionBudgets } from "./eviction-now.ts";
import { eventPage, lifecycleItem, podPage, waiting } from "./lifecycle.ts";
import { mark, markPage } from "./marks.ts";
import {
  anything,
  foreign,
  list,
  named,
  nullable,
  object,
  optional,
  type Schema,
  text,
  type ValueOf,
} from "./schema.ts";

/**
 * The response of each path. Handlers and clients use its types; the schemas are loaded only to generate the document.
 */
export const answers = {
  version: version,
  node: nodeSummary,
  configuration: foreign<AgentConfiguration>(configurationInForceSchema),
  plugins: list(plugin),
  "plugins/exchange": pluginExchanges,
  objects: publishedObjects,
  "objects/fields": fieldPage,
  "objects/content": objectContent,
  devices: drivers,
  "devices/list": devicePage,
  claims: claims,
  marks: markPage,
  pods: podPage,
  events: eventPage,
  "eviction/explain": podExplanation,
  "eviction/node": nodeExplanation,
  "eviction/budgets": evictionBudgets,
  "eviction/candidates": candidateCounts,
  "eviction/pods": historyPods,
  "eviction/history": historyPage,
  "eviction/rounds": list(roundSummary),
  "eviction/records": recordPage,
  "eviction/evictions": evictionPage,
  "eviction/readings": readings,
  "openapi.json": anything(),
} as const satisfies Record<keyof typeof operations, Schema<unknown>>;

/** The data of each stream event, by event name. */
export const streamEvents = named(
  "StreamEvents",
  object(
    {
      open: optional(
        object({ topics: list(text(), "The requested topics whose part is enabled.") }, "The first message."),
      ),
      heartbeat: optional(object({}, "Sent if nothing else was sent for 10 s.")),
      events: optional(lifecycleItem),
      snapshot: optional(lifecycleItem),
      waiting: optional(waiting),
      rounds: optional(roundSummary),
      marks: optional(mark),
      node: optional(nodeSummary),
      plugins: optional(list(plugin)),
      objects: optional(publishedObjects),
      devices: optional(drivers),
      claims: optional(claims),
      "eviction/node": optional(nodeExplanation),
      "eviction/budgets": optional(evictionBudgets),
      "eviction/candidates": optional(candidateCounts),
      readings: optional(nullable(roundReadings)),
    },
    "The data of each event by the event's name: a message has one of them.",
  ),
);

/** A path below /api/v1/, such as "plugins". */
export type ApiPath = keyof typeof operations;

/** The response of each path, as clients read it. */
export type ApiAnswers = { [Path in ApiPath]: ValueOf<(typeof answers)[Path]> };
