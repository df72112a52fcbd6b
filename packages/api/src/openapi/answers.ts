import type { operations } from "../http/index.ts";
import * as s from "../schemas/index.ts";
import { type AgentConfiguration, configurationInForceSchema } from "../settings/index.ts";
import * as agent from "./agent.ts";
import { claims, devicePage, drivers } from "./devices.ts";
import * as eviction from "./eviction.ts";
import { candidateCounts, eligiblePods, evictionBudgets } from "./eviction-now.ts";
import { eventPage, lifecycleItem, podPage, podUsage, waiting } from "./lifecycle.ts";
import { mark, markPage } from "./marks.ts";

/**
 * The response of each path. Handlers and clients use its types; the schemas are loaded only to generate the document.
 */
export const answers = {
  version: agent.version,
  node: agent.nodeSummary,
  configuration: s.foreign<AgentConfiguration>(configurationInForceSchema),
  plugins: s.list(agent.plugin),
  "plugins/exchange": agent.pluginExchanges,
  objects: agent.publishedObjects,
  "objects/fields": agent.fieldPage,
  "objects/content": agent.objectContent,
  devices: drivers,
  "devices/list": devicePage,
  claims: claims,
  marks: markPage,
  pods: podPage,
  "pods/usage": podUsage,
  events: eventPage,
  "eviction/explain": eviction.podExplanation,
  "eviction/node": eviction.nodeExplanation,
  "eviction/budgets": evictionBudgets,
  "eviction/candidates": candidateCounts,
  "eviction/eligibility": eligiblePods,
  "eviction/pods": eviction.historyPods,
  "eviction/history": eviction.historyPage,
  "eviction/rounds": s.list(eviction.roundSummary),
  "eviction/records": eviction.recordPage,
  "eviction/evictions": eviction.evictionPage,
  "eviction/readings": eviction.readings,
  "eviction/signals": eviction.signalHistory,
  "openapi.json": s.anything(),
} as const satisfies Record<keyof typeof operations, s.Schema<unknown>>;

/** The data of each stream event, by event name. */
export const streamEvents = s.named(
  "StreamEvents",
  s.object(
    {
      open: s.optional(
        s.object(
          { topics: s.list(s.text(), "The requested topics whose part is enabled.") },
          "The first message.",
        ),
      ),
      heartbeat: s.optional(s.object({}, "Sent if nothing else was sent for 10 s.")),
      events: s.optional(lifecycleItem),
      snapshot: s.optional(lifecycleItem),
      waiting: s.optional(waiting),
      rounds: s.optional(eviction.roundSummary),
      marks: s.optional(mark),
      node: s.optional(agent.nodeSummary),
      plugins: s.optional(s.list(agent.plugin)),
      objects: s.optional(agent.publishedObjects),
      devices: s.optional(drivers),
      claims: s.optional(claims),
      "eviction/node": s.optional(eviction.nodeExplanation),
      "eviction/budgets": s.optional(evictionBudgets),
      "eviction/candidates": s.optional(candidateCounts),
      readings: s.optional(s.nullable(eviction.roundReadings)),
    },
    "The data of each event by the event's name: a message has one of them.",
  ),
);

/** A path below /api/v1/, such as "plugins". */
export type ApiPath = keyof typeof operations;

/** The response of each path, as clients read it. */
export type ApiAnswers = { [Path in ApiPath]: s.ValueOf<(typeof answers)[Path]> };
