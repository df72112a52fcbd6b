import { EvictionPluginDefinition } from "@nodekeeper/core/gen/evictionplugin/v1alpha1/api.ts";
import { RoundRequestsDefinition } from "@nodekeeper/core/gen/nodekeeper/eviction/v1alpha1/api.ts";
import {
  type ReportContent,
  ReporterPluginDefinition,
} from "@nodekeeper/core/gen/reporterplugin/v1alpha1/api.ts";
import { LatestValue } from "@nodekeeper/core/lib";
import { CallSite } from "./author-error.ts";
import { type EvictionAnswers, evictionService } from "./eviction-service.ts";
import { reportingKind } from "./reporting-kind.ts";
import type { Report } from "./run-report.ts";
import { type Plugin, type PluginKind, type PluginOptions, ServedPlugin } from "./served-plugin.ts";
import { reporterService, roundRequestService } from "./services.ts";

export interface ReporterPluginOptions extends PluginOptions {
  /** Yields everything the plugin reports, again each time it changes. */
  report: Report<ReportContent>;
}

export type ReporterPlugin = Plugin;

/**
 * Serves a reporter plugin on a unix socket: registration and content. Serves again when the socket disappears,
 * which is also how the agent asks for a new registration. Restarts `report` when it throws.
 */
export function serveReporterPlugin(options: ReporterPluginOptions): ReporterPlugin {
  const kind = reportingKind({
    type: "ReporterPlugin",
    versions: ["v1alpha1"],
    report: options.report,
    addService: (server, latest, stop) =>
      void server.add(ReporterPluginDefinition, reporterService(latest, stop)),
  });
  return new ServedPlugin(options, kind, new CallSite(serveReporterPlugin));
}

export interface EvictionPluginOptions extends PluginOptions, EvictionAnswers {}

export interface EvictionPlugin extends Plugin {
  /**
   * Requests a round before its time, because a threshold was crossed: the agent asks all plugins at once instead of at
   * the end of its period. It starts at most one such round a second, whichever plugin requests it. A request that the agent has
   * not taken yet is replaced by the next. @param reason for the agent's log; at most 1,024 characters are kept
   */
  requestRound(reason: string): void;
}

// A few thousand pods of the size they have in the field.
const MAX_OFFER_BYTES = 64 * 1024 * 1024;

/**
 * Serves an eviction plugin on a unix socket: the agent asks it each round whether its threshold is met and which pods
 * should go, decides, and evicts. The plugin needs no access to the API server. Which pods are offered is the agent's
 * configuration; one that was not offered is refused.
 */
export function serveEvictionPlugin(options: EvictionPluginOptions): EvictionPlugin {
  const requests = new LatestValue<string>();
  const kind: PluginKind = {
    type: "EvictionPlugin",
    versions: ["v1alpha1"],
    maxRequestBytes: MAX_OFFER_BYTES,
    addService: (server, { log, stop }) => {
      server.add(EvictionPluginDefinition, evictionService(options.name, options, stop, log));
      server.add(RoundRequestsDefinition, roundRequestService(requests, stop));
    },
  };
  const plugin = new ServedPlugin(options, kind, new CallSite(serveEvictionPlugin));
  return Object.assign(plugin, { requestRound: (reason: string) => requests.set(reason) });
}
