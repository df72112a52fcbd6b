import { type PluginChange, PluginManager } from "../plugins/index.ts";
import { apiRoute, exchangeRoute, type KnownPlugins, listPlugins, pluginCalls } from "../server/index.ts";
import type { NewMark } from "../state/index.ts";
import type { AgentContext } from "./context.ts";
import type { DevicesPart } from "./devices.ts";
import type { EvictionPart } from "./eviction.ts";
import type { AgentPart } from "./part.ts";
import type { ReportingPart } from "./reporting.ts";

/** The parts that plugins register with. */
export interface PluginHandlers {
  reporting: ReportingPart;
  devices: DevicesPart;
  eviction: EvictionPart | undefined;
}

/** What finds sockets and registers plugins. */
export interface PluginsPart extends AgentPart {
  /** All plugins, as the API lists them, without their calls. */
  known: () => Omit<KnownPlugins, "calls">;
}

/** Builds the plugin manager, which finds sockets and registers plugins. */
export function pluginsPart(
  { configuration, clock, log, registry, startedAt, marks }: AgentContext,
  { reporting: { manager, publisher }, devices, eviction }: PluginHandlers,
): PluginsPart {
  const { plugins, api, runtime } = configuration();
  const pluginManager = new PluginManager({
    directories: plugins.directories,
    endpointDirectories: plugins.endpointDirectories,
    allowedUids: plugins.allowedUids.map(Number),
    foreignSockets: [api.socket, runtime.endpoint.replace("unix://", "")].filter((path) => path !== ""),
    handlers: [manager, devices.handler, ...(eviction ? [eviction.plugins] : [])],
    clock,
    log: log.child({ logger: "plugins" }),
    registry,
    reservedNames: (type) => (type === manager.type ? manager.inTreeNames : new Set()),
    rescanIntervalMs: plugins.rescanInterval,
    livenessIntervalMs: plugins.livenessInterval,
    onChange: (change) => marks.add([markOfPlugin(change)]),
    // A socket that accepts and sends nothing is not distinguished from one that does not answer GetInfo.
    dialTimeoutMs: plugins.infoTimeout,
    infoTimeoutMs: plugins.infoTimeout,
    notifyTimeoutMs: plugins.notifyTimeout,
    maxPlugins: plugins.maxPlugins,
  });
  const known = () => ({
    sockets: pluginManager.list(),
    reporters: manager.status(),
    objects: publisher.status(),
    evictionPlugins: eviction?.plugins.status() ?? [],
    drivers: devices.sync.status(),
    now: clock.now(),
    startedAt,
  });
  return {
    known,
    runnables: [pluginManager],
    checks: [pluginManager.healthCheck()],
    routes: [
      apiRoute("plugins", async () => listPlugins({ ...known(), calls: await pluginCalls(registry) })),
      exchangeRoute({
        ReporterPlugin: (name) => manager.exchanges(name),
        EvictionPlugin: (name) => eviction?.plugins.exchanges(name),
        DRAPlugin: (name) => devices.exchanges(name),
      }),
    ],
  };
}

const markKindOf = {
  registered: "pluginRegistered",
  lost: "pluginLost",
  refused: "pluginRefused",
} as const;

// "EvictionPlugin pressure lost: its socket was removed"
function markOfPlugin(change: PluginChange): NewMark {
  const { kind, type, name } = change;
  const reason = kind === "registered" ? "" : `: ${change.reason}`;
  const title = `${type || "plugin"} ${name} ${kind}${reason}`;
  return { kind: markKindOf[kind], title, plugin: name };
}
