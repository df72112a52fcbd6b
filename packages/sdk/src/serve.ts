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
  /** Yields everything that the plugin reports, at the start and after each change. */
  report: Report<ReportContent>;
}

export type ReporterPlugin = Plugin;

/**
 * Serves a reporter plugin on a unix socket: registration and content. If the socket disappears, it is served again,
 * which registers the plugin again; an agent may remove it for that. Restarts `report` if it throws;
 * until its next value, the agent shows its message as the plugin's error.
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
   * Requests an eviction round before the end of the period, because a threshold was crossed: the agent calls all
   * plugins at once. It starts at most one such round per second for all plugins. A pending request is replaced by the
   * next.
   * @param reason for the agent's log; truncated to 1,024 characters
   */
  requestRound(reason: string): void;
}

// Enough for a few thousand pods of typical size.
const MAX_OFFER_BYTES = 64 * 1024 * 1024;

/**
 * Serves an eviction plugin on a unix socket. In each round the agent asks it whether its threshold is met and which
 * pods to evict, decides, and evicts. The plugin needs no access to the API server. The agent's configuration
 * determines which pods are candidates; a request for any other pod is refused.
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
