import { GracePeriodCut } from "@nodekeeper/api/errors";
import type { AgentConfiguration } from "@nodekeeper/api/settings";
import {
  type Clock,
  childScope,
  type HealthCheck,
  type HealthResult,
  InotifyWatches,
  type Logger,
  NodekeeperError,
  processCpuMs,
  type Registry,
  type Runnable,
  type ScopedSignal,
  Semaphore,
} from "@nodekeeper/core/lib";
import { Liveness } from "./liveness.ts";
import { createPluginMetrics } from "./metrics.ts";
import { type PluginNameStore, PluginNames } from "./plugin-names.ts";
import { RegisteredPlugins } from "./registered-plugins.ts";
import { PluginSession, type Predecessor, type SessionContext } from "./session.ts";
import type { FoundSocket, ScanLimits, ScanResult } from "./socket-scan.ts";
import { SocketTrust } from "./socket-trust.ts";
import { SocketWatcher } from "./socket-watcher.ts";
import type { PluginChange, PluginStatus } from "./status.ts";
import type { PluginHandler } from "./types.ts";

type PluginsSection = AgentConfiguration["plugins"];

/**
 * The `plugins` section of the configuration, and limits that only tests override. Durations are in
 * milliseconds.
 */
export interface PluginSettings extends PluginsSection {
  /** Sockets that must not be used as endpoints. */
  foreignSockets?: readonly string[];
  /** Minimum time after the start for which a name stays with its previous user. Default: 10 s. */
  returnMs?: number;
  /** Timeout for connecting. Default: infoTimeout. */
  dialTimeout?: number;
  /**
   * Maximum number of concurrent first handshakes. Sockets that have failed may use a quarter of this number.
   * Default: 64.
   */
  maxHandshakes?: number;
  limits?: Partial<ScanLimits>;
}

export interface PluginManagerOptions {
  settings: PluginSettings;
  /** At most one per plugin type. */
  handlers: readonly PluginHandler[];
  clock: Clock;
  log: Logger;
  registry: Registry;
  /** Persists the users of names across restarts of the agent. Default: nothing is persisted. */
  nameStore?: PluginNameStore;
  /**
   * Called when a plugin is registered, lost or refused. Repeated refusals with the same reason are reported
   * once.
   */
  onChange?: (change: PluginChange) => void;
  /** Starts watches of directories. Default: a new instance. */
  watches?: InotifyWatches;
}

type Common = Pick<SessionContext, "clock" | "log" | "metrics" | "handlers" | "onChange">;

interface RunningSession {
  session: PluginSession;
  scope: ScopedSignal;
  finished: Promise<void>;
}

// How long a handler may take to register a plugin.
const HANDLER_TIMEOUT_MS = 30_000;

const defaultLimits: ScanLimits = {
  maxDepth: 8,
  maxDirectories: 256,
  maxEntries: 100_000,
  maxSockets: 1_024,
};

/**
 * Discovers plugins by their sockets and registers them with the handler of their type, like the kubelet's
 * pkg/kubelet/pluginmanager. Each socket file has one session. `RegisteredPlugins` decides which socket owns
 * a name.
 */
export class PluginManager implements Runnable {
  readonly name = "pluginManager";
  readonly #context: SessionContext;
  readonly #watcher: SocketWatcher;
  readonly #names: PluginNames;
  readonly #sessions = new Map<string, RunningSession>();
  readonly #running = new Set<Promise<void>>();
  #sequence = 0;

  constructor(options: PluginManagerOptions) {
    const {
      settings,
      clock,
      log,
      registry,
      watches = new InotifyWatches(log),
      onChange = () => {},
    } = options;
    const handlers = byType(options.handlers);
    const typeOf = (type = "") => (handlers.has(type) ? type : "unknown");
    const metrics = createPluginMetrics(registry, () =>
      this.list().map(({ type, state }) => ({ type: typeOf(type), state })),
    );
    const common = { clock, log, metrics, handlers, onChange };
    this.#names = this.#makeNames(options, common);
    this.#context = {
      ...common,
      registered: this.#makeRegistered(common),
      ...sessionSettings(settings),
      liveness: new Liveness(clock, metrics),
    };
    this.#watcher = new SocketWatcher({
      directories: settings.directories,
      limits: { ...defaultLimits, ...settings.limits },
      rescanIntervalMs: settings.rescanInterval,
      clock,
      cpuMs: processCpuMs,
      log,
      watches,
      scanSeconds: metrics.scanSeconds,
      isKnown: (path) => this.#sessions.has(path),
      onScan: (result, signal) => this.#apply(result, signal),
    });
  }

  #makeNames({ settings, nameStore = nothingStored }: PluginManagerOptions, common: Common): PluginNames {
    const { clock, log, metrics, handlers, onChange } = common;
    return new PluginNames({
      store: nameStore,
      handlers,
      bound: new Map(settings.nameOwners.map(nameAndUser)),
      directories: settings.directories,
      maxPlugins: settings.maxPlugins,
      returnMs: settings.returnMs ?? 10_000,
      onVacancy: () => this.#vacancy(),
      onDisplaced: ({ type, name, uid }, reason) => {
        metrics.displaced.inc({ type });
        log.warn(
          { errorId: GracePeriodCut.id, type, plugin: name, uid, reason },
          "grace period of a lost plugin ended early",
        );
        onChange({ kind: "displaced", type, name, uid, errorId: GracePeriodCut.id, reason });
      },
      clock,
      log,
    });
  }

  #makeRegistered({ log, metrics, onChange }: Common): RegisteredPlugins {
    return new RegisteredPlugins({
      log,
      names: this.#names,
      onVacancy: () => this.#vacancy(),
      onDeregistered: ({ type, name }, reason) => {
        metrics.deregistrations.inc({ type, reason });
        log.info({ type, plugin: name, reason }, "plugin deregistered");
        onChange({ kind: "lost", type, name, reason });
      },
    });
  }

  /**
   * Watches directories and registers plugins until the signal aborts. Plugins stay registered with their
   * handlers afterwards, because they keep running when the agent stops.
   */
  async run(signal: AbortSignal): Promise<void> {
    this.#names.start();
    try {
      await this.#watcher.run(signal);
    } finally {
      for (const { scope } of this.#sessions.values()) scope.abort(signal.reason);
      await Promise.all(this.#running);
      this.#sessions.clear();
      this.#names.close();
    }
  }

  /** Returns the status of every known socket, sorted by path. */
  list(): PluginStatus[] {
    const statuses = [...this.#sessions.values()].map(({ session }) => session.status());
    return statuses.sort((a, b) => (a.registrationSocket < b.registrationSocket ? -1 : 1));
  }

  /**
   * Fails if a directory cannot be created or read, if no scan has succeeded for three rescan intervals, or
   * before the first scan.
   */
  healthCheck(): HealthCheck {
    const check = (): HealthResult => this.#watcher.health();
    return { name: "PluginWatcherReady", kind: "ready", check };
  }

  // Level-triggered: compares the sockets found with the existing sessions. Ends sessions before it starts
  // others.
  #apply({ sockets, failures, unread }: ScanResult, signal: AbortSignal): void {
    for (const [path, { scope }] of this.#sessions) {
      // Sessions in a directory that is currently unreadable are kept.
      if (sockets.has(path) || isUnder(path, failures) || isUnder(path, unread)) continue;
      this.#sessions.delete(path);
      scope.abort(new NodekeeperError("notFound", "its socket was removed"));
    }
    for (const socket of [...sockets.values()].sort(byAge)) {
      const present = this.#sessions.get(socket.path);
      if (present?.session.identity === socket.identity) continue;
      present?.scope.abort(new NodekeeperError("conflict", "its socket was re-created"));
      this.#begin(socket, present, signal);
    }
  }

  #begin(socket: FoundSocket, predecessor: Predecessor | undefined, parent: AbortSignal): void {
    const session = new PluginSession(socket, ++this.#sequence, predecessor, this.#context);
    const scope = childScope(parent);
    const finished = session.run(scope.signal).finally(() => {
      scope.release();
      this.#running.delete(finished);
    });
    this.#running.add(finished);
    this.#sessions.set(socket.path, { session, scope, finished });
  }

  #vacancy(): void {
    for (const { session } of this.#sessions.values()) session.vacancy();
  }
}

const nothingStored: PluginNameStore = { names: () => [], save() {}, remove() {} };

// Parses "gpu.example.com=65532". Bindings ignore the case of names.
function nameAndUser(setting: string): [name: string, uid: number] {
  const [name = "", uid] = setting.split("=");
  return [name.toLowerCase(), Number(uid)];
}

function sessionSettings(settings: PluginSettings) {
  const { directories, endpointDirectories, infoTimeout, maxHandshakes = 64, foreignSockets = [] } = settings;
  const allowedUids = settings.allowedUids.map(Number);
  return {
    handshakes: {
      first: new Semaphore({ permits: maxHandshakes }),
      retries: new Semaphore({ permits: Math.ceil(maxHandshakes / 4) }),
    },
    trust: new SocketTrust({ directories, endpointDirectories, allowedUids, foreignSockets }),
    timeouts: {
      // A socket that accepts and sends nothing is treated like one that does not respond to GetInfo.
      dialMs: settings.dialTimeout ?? infoTimeout,
      infoMs: infoTimeout,
      noticeMs: settings.notifyTimeout,
      handlerMs: HANDLER_TIMEOUT_MS,
    },
    livenessIntervalMs: settings.livenessInterval,
  };
}

function byType(handlers: readonly PluginHandler[]): Map<string, PluginHandler> {
  const map = new Map<string, PluginHandler>();
  for (const handler of handlers) {
    if (map.has(handler.type)) {
      throw new NodekeeperError("internal", `two handlers for plugins of type ${handler.type}`);
    }
    map.set(handler.type, handler);
  }
  return map;
}

function byAge(a: FoundSocket, b: FoundSocket): number {
  if (a.bornNs !== b.bornNs) return a.bornNs < b.bornNs ? -1 : 1;
  return a.path < b.path ? -1 : 1;
}

function isUnder(path: string, directories: ReadonlyMap<string, string>): boolean {
  for (const directory of directories.keys()) {
    if (path.startsWith(`${directory.replace(/\/+$/, "")}/`)) return true;
  }
  return false;
}
