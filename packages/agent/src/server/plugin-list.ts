import { ReporterDisconnected } from "@nodekeeper/api/errors";
import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { counted, problemPlace } from "@nodekeeper/api/wording";
import type { DriverStatus, PresentProblem } from "../devices/index.ts";
import type { EvictionPluginStatus } from "../eviction/index.ts";
import type { PluginStatus } from "../plugins/index.ts";
import type { ObjectStatus, ReporterStatus } from "../reporting/index.ts";
import { keyOf, type PluginCalls } from "./plugin-calls.ts";

/** A row of `nodekeeper plugins list`: a plugin's registration and what it reports. */
type PluginRow = ApiAnswers["plugins"][number];

const REPORTER = "ReporterPlugin";
const EVICTION = "EvictionPlugin";
const DRIVER = "DRAPlugin";

/** What the agent knows about plugins, by the part that they register with. */
export interface KnownPlugins {
  sockets: readonly PluginStatus[];
  reporters: readonly ReporterStatus[];
  objects: readonly Pick<ObjectStatus, "object" | "quarantined" | "contested">[];
  evictionPlugins: readonly EvictionPluginStatus[];
  drivers: readonly (Pick<DriverStatus, "name" | "messageAt" | "error" | "writeError" | "quarantined"> & {
    /** At most 1,000. */
    problems: readonly PresentProblem[];
  })[];
  /** By `keyOf`. */
  calls: ReadonlyMap<string, PluginCalls>;
  /** Wall-clock time, milliseconds. */
  now: number;
  /** Wall-clock start time of the agent, milliseconds. */
  startedAt: number;
}

/**
 * Joins registration sockets, whether registered or failed, with reporters that have content, their unpublished
 * content, eviction plugins, drivers, and the calls of each. Sorted by name.
 */
export function listPlugins(known: KnownPlugins): PluginRow[] {
  const { calls, now, startedAt } = known;
  return joined(known).map((row) => {
    const counted = calls.get(keyOf(row.type, row.name));
    if (!counted || (row.state !== "registered" && row.state !== "in-tree")) return row;
    const reporter = known.reporters.find(({ name }) => row.type === REPORTER && name === row.name);
    const since = Math.max(startedAt, reporter?.countedSince ?? row.since ?? 0);
    const minutes = Math.max(now - since, 1_000) / 60_000;
    // Rounded, because an average that changes in every response would be sent to streams every time.
    return { ...row, calls: { ...counted, perMinute: Math.round((counted.count / minutes) * 10) / 10 } };
  });
}

function joined({ sockets, reporters, objects, evictionPlugins, drivers }: KnownPlugins): PluginRow[] {
  const rows = sockets.map((socket): PluginRow => {
    const isNamed = ({ name }: { name: string }) => socket.state === "registered" && name === socket.name;
    const reporter = socket.type === REPORTER ? reporters.find(isNamed) : undefined;
    const evictionPlugin = socket.type === EVICTION ? evictionPlugins.find(isNamed) : undefined;
    const driver = socket.type === DRIVER ? drivers.find(isNamed) : undefined;
    return {
      name: socket.name ?? "",
      type: socket.type ?? "",
      state: socket.state,
      endpoint: socket.endpoint,
      registrationSocket: socket.registrationSocket,
      versions: [...(socket.versions ?? [])],
      since: socket.since,
      attempts: socket.attempts,
      ...contentOf(reporter, objects),
      ...(evictionPlugin ? { problems: [...evictionPlugin.problems] } : {}),
      ...(driver ? problemsOf(driver) : {}),
      contactAt: reporter?.contactAt ?? evictionPlugin?.answeredAt ?? driver?.messageAt,
      error:
        socket.reason ??
        reporter?.lastError?.message ??
        evictionPlugin?.lastError?.message ??
        driver?.error ??
        driver?.writeError,
      errorId: socket.errorId ?? (socket.reason ? undefined : (reporter ?? evictionPlugin)?.lastError?.id),
      errorSince: socket.reason ? undefined : (reporter ?? evictionPlugin)?.lastError?.since,
    };
  });
  for (const plugin of evictionPlugins) if (plugin.inTree) rows.push(inTreeRow(plugin));
  for (const reporter of reporters) {
    if (rows.some((row) => row.state === "registered" && row.type === REPORTER && row.name === reporter.name))
      continue;
    if (!reporter.inTree && reporter.state === "running") continue;
    const { lostReason, lastError } = reporter;
    rows.push({
      name: reporter.name,
      type: REPORTER,
      state: reporter.inTree ? "in-tree" : "lost",
      endpoint: reporter.endpoint,
      versions: [],
      since: reporter.stoppedAt,
      attempts: 0,
      ...contentOf(reporter, objects),
      error: [lostReason, lastError?.message].filter(Boolean).join("; ") || undefined,
      // Operators act on the disconnection, regardless of the result of the last call.
      errorId: lostReason === undefined ? lastError?.id : ReporterDisconnected.id,
      errorSince: lostReason === undefined ? lastError?.since : undefined,
    });
  }
  return rows.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

function inTreeRow(plugin: EvictionPluginStatus): PluginRow {
  const { name, lastError, problems, answeredAt } = plugin;
  return {
    name,
    type: EVICTION,
    state: "in-tree",
    versions: [],
    attempts: 0,
    contentBytes: 0,
    contactAt: answeredAt,
    problems: [...problems],
    error: lastError?.message,
    errorId: lastError?.id,
    errorSince: lastError?.since,
  };
}

// At this length the list was cut, so a problem may have more places than are listed.
const MOST_PROBLEMS = 1_000;

/**
 * Returns a driver's problems, and as texts the number of quarantined devices and each problem with the
 * devices, pools or claims that have it. Some devices are published, for example without a dropped field.
 */
function problemsOf({ problems, quarantined }: KnownPlugins["drivers"][number]) {
  if (problems.length === 0 && quarantined === 0) return {};
  const count = quarantined === 0 ? [] : [`${counted(quarantined, "device")} quarantined`];
  const reasons = Map.groupBy(problems, ({ errorId, message }) => `${errorId} ${message}`);
  const isWhole = problems.length < MOST_PROBLEMS;
  const texts = [...reasons.values()].map((those) => {
    const { errorId, message } = those[0]!;
    const [place, ...others] = new Set(those.map(problemPlace));
    const more = isWhole ? (others.length > 0 ? ` and ${others.length} more` : "") : " and others";
    return `${errorId}: ${place ? `${place}${more}: ` : ""}${message}`;
  });
  return { problems: [...count, ...texts], driverProblems: [...problems] };
}

function contentOf(
  reporter: ReporterStatus | undefined,
  objects: readonly Pick<ObjectStatus, "object" | "quarantined" | "contested">[],
) {
  const refusals = objects.flatMap(({ object, quarantined }) => {
    const message = reporter && quarantined[reporter.name];
    return message === undefined ? [] : [`its content of ${object} is not published: ${message}`];
  });
  const contests = objects.flatMap(({ object, contested }) =>
    contested
      .filter(({ plugins }) => reporter && plugins.includes(reporter.name))
      .map(({ path, writers, times }) => {
        const by = writers.join(", ") || "a client that is not recorded";
        return `${path} of ${object} is also written by ${by}: put back ${times} times`;
      }),
  );
  return {
    contentAt: reporter?.updatedAt,
    contentBytes: reporter?.contentBytes ?? 0,
    contactAt: reporter?.contactAt,
    problems: [...(reporter?.problems ?? []), ...refusals, ...contests],
  };
}
