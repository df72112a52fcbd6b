import {
  type Clock,
  childScope,
  type HealthCheck,
  type HealthResult,
  type InotifyWatches,
  type Logger,
  NodekeeperError,
  processCpuMs,
  type Registry,
  type Runnable,
  type ScopedSignal,
  Semaphore,
} from "@nodekeeper/core/lib";
import { type PluginContext, type PluginSettings, Vacancies } from "./context.ts";
import type { Predecessor } from "./inheritance.ts";
import { Liveness } from "./liveness.ts";
import { createPluginMetrics } from "./metrics.ts";
import { type PluginNameStore, PluginNames } from "./plugin-names.ts";
import { RegisteredPlugins } from "./registered-plugins.ts";
import { PluginSession, type SessionContext } from "./session.ts";
import type { FoundSocket, ScanResult } from "./socket-scan.ts";
import { SocketTrust } from "./socket-trust.ts";
import { SocketWatcher } from "./socket-watcher.ts";
import type { PluginStatus } from "./status.ts";
import type { PluginHandler } from "./types.ts";

export interface PluginManagerOptions {
  settings: PluginSettings;
  /** At most one per plugin type; two of one type are a defect and throw `internal`. */
  handlers: readonly PluginHandler[];
  clock: Clock;
  log: Logger;
  registry: Registry;
  /** Persists the users of names across restarts of the agent. */
  nameStore: PluginNameStore;
  onChange: PluginContext["onChange"];
  /** Starts watches of directories. */
  watches: InotifyWatches;
}

interface RunningSession {
  session: PluginSession;
  scope: ScopedSignal;
  finished: Promise<void>;
}

// How long a handler may take to register a plugin.
const HANDLER_TIMEOUT_MS = 30_000;

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
    const { settings, clock, log, registry, onChange, nameStore, watches } = options;
    const handlers = byType(options.handlers);
    const typeOf = (type = "") => (handlers.has(type) ? type : "unknown");
    const metrics = createPluginMetrics(registry, () =>
      this.list().map(({ type, state }) => ({ type: typeOf(type), state })),
    );
    const vacancies = new Vacancies();
    const context: PluginContext = { settings, handlers, onChange, vacancies, metrics, clock, log };
    this.#names = new PluginNames({ ...context, store: nameStore });
    this.#context = {
      ...context,
      ...sessionSettings(settings),
      registered: new RegisteredPlugins({ ...context, names: this.#names }),
      liveness: new Liveness(clock, metrics),
    };
    this.#watcher = new SocketWatcher({ ...context, watches, cpuMs: processCpuMs });
  }

  /**
   * Watches directories and registers plugins until the signal aborts. Plugins stay registered with their
   * handlers afterwards, because they keep running when the agent stops.
   */
  async run(signal: AbortSignal): Promise<void> {
    this.#names.start();
    try {
      for await (const scan of this.#watcher.scans(this.#sessions, signal)) this.#apply(scan, signal);
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
}

function byType(handlers: readonly PluginHandler[]): Map<string, PluginHandler> {
  const found = new Map<string, PluginHandler>();
  for (const handler of handlers) {
    const { type } = handler;
    if (found.has(type)) throw new NodekeeperError("internal", `two handlers for plugins of type ${type}`);
    found.set(type, handler);
  }
  return found;
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
