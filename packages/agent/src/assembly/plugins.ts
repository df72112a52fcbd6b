import { type PluginChange, PluginManager } from "../plugins/index.ts";
import { apiRoute, exchangeRoute, type KnownPlugins, listPlugins, pluginCalls } from "../server/index.ts";
import { type NewMark, PluginNameStore } from "../state/index.ts";
import type { AgentContext } from "./context.ts";
import type { DevicesPart } from "./devices.ts";
import type { EvictionPart } from "./eviction.ts";
import type { AgentPart } from "./part.ts";
import { pluginEvents } from "./plugin-events.ts";
import type { ReportingPart } from "./reporting.ts";

const RETURN_MS = 10_000;

/** The parts that plugins register with. */
export interface PluginHandlers {
  reporting: ReportingPart;
  devices: DevicesPart;
  eviction: EvictionPart | undefined;
}

/** Discovery and registration of plugins. */
export interface PluginsPart extends AgentPart {
  /** Returns all plugins as listed by the API, without their calls. */
  known: () => Omit<KnownPlugins, "calls">;
}

/** Builds the plugin manager, which finds sockets and registers plugins. */
export function pluginsPart(
  { configuration, clock, log, registry, startedAt, marks, notify, database, watches }: AgentContext,
  { reporting: { manager, publisher }, devices, eviction }: PluginHandlers,
): PluginsPart {
  const { plugins, api, runtime, devices: deviceSettings } = configuration();
  const recordEvent = pluginEvents(clock, notify);
  const pluginManager = new PluginManager({
    settings: {
      ...plugins,
      foreignSockets: [api.socket, runtime.endpoint.replace("unix://", "")].filter((path) => path !== ""),
      // The slices of previously registered drivers are kept this long.
      returnMs: Math.max(RETURN_MS, deviceSettings.settleTime),
    },
    handlers: [manager, devices.handler, ...(eviction ? [eviction.plugins] : [])],
    clock,
    log: log.child({ logger: "plugins" }),
    registry,
    nameStore: new PluginNameStore(database),
    onChange: (change) => {
      marks.add([markOfPlugin(change)]);
      recordEvent(change);
    },
    watches,
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
  displaced: "pluginLost",
} as const;

// "EvictionPlugin pressure lost: its socket was removed"
function markOfPlugin(change: PluginChange): NewMark {
  const { kind, type, name } = change;
  const reason = kind === "registered" ? "" : `: ${change.reason}`;
  const title = `${type || "plugin"} ${name} ${kind}${reason}`;
  return { kind: markKindOf[kind], title, plugin: name };
}
