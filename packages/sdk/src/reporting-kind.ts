import { LatestValue } from "@nodekeeper/core/lib";
import type { Server } from "nice-grpc";
import { type Report, runReport } from "./run-report.ts";
import type { PluginKind } from "./served-plugin.ts";

/** A kind of plugin that runs a report and serves its latest value. */
export interface ReportingKind<T> extends Pick<PluginKind, "type" | "versions"> {
  /** Yields everything that the plugin reports, and again after each change. */
  report: Report<T>;
  addService(server: Server, latest: LatestValue<T[]>, stop: AbortSignal): void;
}

export function reportingKind<T>({ type, versions, report, addService }: ReportingKind<T>): PluginKind {
  const latest = new LatestValue<T[]>();
  return {
    type,
    versions,
    addService: (server, { stop }) => addService(server, latest, stop),
    work: ({ clock, log, stop }) => runReport(report, latest, { clock, log }, stop),
  };
}
