import { type Clock, TokenBucket } from "@nodekeeper/core/lib";
import { type PluginChange, PluginManager } from "../plugins/index.ts";
import { apiRoute, exchangeRoute, type KnownPlugins, listPlugins, pluginCalls } from "../server/index.ts";
import { type NewMark, PluginNameStore } from "../state/index.ts";
import type { AgentContext } from "./context.ts";
import type { DevicesPart } from "./devices.ts";
import type { EvictionPart } from "./eviction.ts";
import type { AgentPart } from "./part.ts";
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
    drivers: devices.sync
      .status()
      .map((driver) => ({ ...driver, problems: devices.sync.problemsOf(driver.name) })),
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

// All Events about the Node share one limit, which a user whose plugins are repeatedly refused must not exhaust.
const PER_USER = { burst: 3, perSecond: 1 / 600 };
const MOST_USERS = 128;

/**
 * Returns a function that records refused and displaced plugins as Events on the Node. Each user has a burst of three
 * Events, then one every ten minutes.
 */
function pluginEvents(clock: Clock, notify: AgentContext["notify"]): (change: PluginChange) => void {
  const buckets = new Map<number | undefined, TokenBucket>();
  const bucketOf = (uid: number | undefined): TokenBucket => {
    const known = buckets.get(uid);
    if (known) return known;
    if (buckets.size >= MOST_USERS) buckets.clear();
    const bucket = new TokenBucket(clock, PER_USER);
    buckets.set(uid, bucket);
    return bucket;
  };
  return (change) => {
    const { kind, type, name } = change;
    if (kind !== "refused" && kind !== "displaced") return;
    const { uid, errorId, reason } = change;
    if (!bucketOf(uid).tryTake()) return;
    const user = uid === undefined ? "" : ` of user ID ${uid}`;
    const plugin = `${type || "plugin"} ${name}${user}`;
    const id = errorId === undefined ? "" : `${errorId}: `;
    if (kind === "refused")
      notify({ type: "Warning", reason: "PluginRefused", message: `${plugin} was refused: ${id}${reason}` });
    else
      notify({
        type: "Warning",
        reason: "PluginDisplaced",
        message: `The grace period of ${plugin} ended early: ${id}${reason}`,
      });
  };
}
