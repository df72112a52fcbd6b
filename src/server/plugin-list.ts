import type { EvictionPluginStatus } from "../eviction/index.ts";
import type { PluginStatus } from "../plugins/index.ts";
import type { ObjectStatus, ReporterStatus } from "../reporting/index.ts";

/** A plugin as `nodekeeper plugins list` shows it: its registration and what it reports, in one row. */
export interface PluginRow {
  name: string;
  type: string;
  /** A registration state, or "in-tree", or "lost" while its grace period runs. */
  state: string;
  endpoint: string | undefined;
  registrationSocket: string | undefined;
  versions: readonly string[];
  /** Wall milliseconds; of the state, or of the loss. */
  since: number | undefined;
  attempts: number;
  /** Wall milliseconds of the last changed content. */
  contentAt: number | undefined;
  contentBytes: number;
  /** What is not taken of its content, by the agent or by the API server, each with its reason. */
  problems: readonly string[];
  /** The last refusal or failed call; undefined when nothing is wrong. */
  error: string | undefined;
}

const REPORTER = "ReporterPlugin";
const EVICTION = "EvictionPlugin";

/**
 * Joins the sockets that registered, or failed to, with the reporters that have content, with what the API server
 * refuses of it, and with the eviction plugins that are asked. Sorted by name.
 */
export function listPlugins(
  sockets: readonly PluginStatus[],
  reporters: readonly ReporterStatus[],
  objects: readonly Pick<ObjectStatus, "object" | "quarantined">[] = [],
  evictionPlugins: readonly EvictionPluginStatus[] = [],
): PluginRow[] {
  const rows = sockets.map((socket): PluginRow => {
    const isNamed = ({ name }: { name: string }) => socket.state === "registered" && name === socket.name;
    const reporter = socket.type === REPORTER ? reporters.find(isNamed) : undefined;
    const evictionPlugin = socket.type === EVICTION ? evictionPlugins.find(isNamed) : undefined;
    return {
      name: socket.name ?? "",
      type: socket.type ?? "",
      state: socket.state,
      endpoint: socket.endpoint,
      registrationSocket: socket.registrationSocket,
      versions: socket.versions ?? [],
      since: socket.since,
      attempts: socket.attempts,
      ...contentOf(reporter, objects),
      error: socket.reason ?? reporter?.lastError ?? evictionPlugin?.lastError,
    };
  });
  for (const { name, inTree, lastError } of evictionPlugins) {
    if (inTree) rows.push(inTreeRow(name, EVICTION, lastError));
  }
  for (const reporter of reporters) {
    if (rows.some((row) => row.state === "registered" && row.type === REPORTER && row.name === reporter.name))
      continue;
    if (!reporter.inTree && reporter.state === "running") continue;
    rows.push({
      name: reporter.name,
      type: REPORTER,
      state: reporter.inTree ? "in-tree" : "lost",
      endpoint: reporter.endpoint,
      registrationSocket: undefined,
      versions: [],
      since: reporter.stoppedAt,
      attempts: 0,
      ...contentOf(reporter, objects),
      error: reporter.lastError,
    });
  }
  return rows.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

function inTreeRow(name: string, type: string, error: string | undefined): PluginRow {
  return {
    name,
    type,
    state: "in-tree",
    endpoint: undefined,
    registrationSocket: undefined,
    versions: [],
    since: undefined,
    attempts: 0,
    ...contentOf(undefined, []),
    error,
  };
}

function contentOf(
  reporter: ReporterStatus | undefined,
  objects: readonly Pick<ObjectStatus, "object" | "quarantined">[],
) {
  const refusals = objects.flatMap(({ object, quarantined }) => {
    const message = reporter && quarantined[reporter.name];
    return message === undefined ? [] : [`the API server refuses its content of ${object}: ${message}`];
  });
  return {
    contentAt: reporter?.updatedAt,
    contentBytes: reporter?.contentBytes ?? 0,
    problems: [...(reporter?.problems ?? []), ...refusals],
  };
}
