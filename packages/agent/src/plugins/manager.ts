import {
  type Clock,
  childScope,
  type HealthCheck,
  type HealthResult,
  type Logger,
  NodekeeperError,
  processCpuMs,
  type Registry,
  type Runnable,
  type ScopedSignal,
  Semaphore,
} from "@nodekeeper/core/lib";
import { Liveness } from "./liveness.ts";
import { createPluginMetrics, type PluginMetrics } from "./metrics.ts";
import { RegisteredPlugins } from "./registered-plugins.ts";
import { PluginSession, type Predecessor, type SessionContext } from "./session.ts";
import type { FoundSocket, ScanLimits, ScanResult } from "./socket-scan.ts";
import { SocketTrust } from "./socket-trust.ts";
import { SocketWatcher } from "./socket-watcher.ts";
import type { PluginChange, PluginStatus } from "./status.ts";
import type { PluginHandler } from "./types.ts";

/** Times in milliseconds. Options with a default are optional. */
export interface PluginManagerOptions {
  /** Absolute paths; created with mode 0750 if missing. */
  directories: readonly string[];
  /** At most one for each plugin type. */
  handlers: readonly PluginHandler[];
  clock: Clock;
  log: Logger;
  registry: Registry;
  /** Names of a type that are reserved for in-tree plugins. Default: none. */
  reservedNames?: (type: string) => ReadonlySet<string>;
  /** Interval of directory walks without an inotify event. */
  rescanIntervalMs: number;
  /** Interval of connection probes to the sockets of registered plugins. */
  livenessIntervalMs: number;
  /** How long a connection may take to come up. */
  dialTimeoutMs: number;
  /** The deadline of GetInfo. */
  infoTimeoutMs: number;
  /** The deadline of NotifyRegistrationStatus. */
  notifyTimeoutMs: number;
  /** How long a handler may take to register. Default 30 s. */
  handlerTimeoutMs?: number;
  /** Maximum number of registered plugins. */
  maxPlugins: number;
  /** Maximum number of concurrent first handshakes; a quarter of it for sockets that have failed. Default 64. */
  maxHandshakes?: number;
  /** Directories in which endpoints are allowed in addition to `directories`. Default: none. */
  endpointDirectories?: readonly string[];
  /** User IDs whose plugins are accepted in addition to root and the agent's user. Default: none. */
  allowedUids?: readonly number[];
  /** Sockets that no plugin may use as its endpoint. Default: none. */
  foreignSockets?: readonly string[];
  limits?: Partial<ScanLimits>;
  /** Called when a plugin is registered, lost or refused; for a refusal once while its reason stays the same. */
  onChange?: (change: PluginChange) => void;
  /** CPU time used by this process, milliseconds. Default: process.cpuUsage. */
  cpuMs?: () => number;
}

interface RunningSession {
  session: PluginSession;
  scope: ScopedSignal;
  finished: Promise<void>;
}

const defaultLimits: ScanLimits = {
  maxDepth: 8,
  maxDirectories: 256,
  maxEntries: 100_000,
  maxSockets: 1_024,
};

/**
 * Discovers plugins by their sockets and registers them with the handler of their type, like the kubelet's
 * pkg/kubelet/pluginmanager. Each socket file has one session; `RegisteredPlugins` decides which socket owns a name.
 */
export class PluginManager implements Runnable {
  readonly name = "pluginManager";
  readonly #context: SessionContext;
  readonly #watcher: SocketWatcher;
  readonly #sessions = new Map<string, RunningSession>();
  readonly #running = new Set<Promise<void>>();
  #sequence = 0;

  constructor(options: PluginManagerOptions) {
    const { clock, log, maxHandshakes = 64, onChange = () => {} } = options;
    const metrics = createPluginMetrics(options.registry);
    this.#context = {
      clock,
      log,
      metrics,
      handlers: byType(options.handlers),
      registered: new RegisteredPlugins({
        log,
        reservedNames: options.reservedNames ?? (() => new Set()),
        maxPlugins: options.maxPlugins,
        onVacancy: () => this.#vacancy(),
        onDeregistered: ({ type, name }, reason) => {
          metrics.deregistrations.inc({ type, reason });
          log.info({ type, plugin: name, reason }, "plugin deregistered");
          onChange({ kind: "lost", type, name, reason });
        },
      }),
      handshakes: {
        first: new Semaphore({ permits: maxHandshakes }),
        retries: new Semaphore({ permits: Math.ceil(maxHandshakes / 4) }),
      },
      trust: new SocketTrust({
        directories: options.directories,
        endpointDirectories: options.endpointDirectories ?? [],
        allowedUids: options.allowedUids ?? [],
        foreignSockets: options.foreignSockets ?? [],
      }),
      timeouts: {
        dialMs: options.dialTimeoutMs,
        infoMs: options.infoTimeoutMs,
        noticeMs: options.notifyTimeoutMs,
        handlerMs: options.handlerTimeoutMs ?? 30_000,
      },
      liveness: new Liveness(clock, metrics),
      livenessIntervalMs: options.livenessIntervalMs,
      onChange,
    };
    this.#watcher = new SocketWatcher({
      directories: options.directories,
      limits: { ...defaultLimits, ...options.limits },
      rescanIntervalMs: options.rescanIntervalMs,
      clock,
      cpuMs: options.cpuMs ?? processCpuMs,
      log,
      scanSeconds: metrics.scanSeconds,
      isKnown: (path) => this.#sessions.has(path),
      onScan: (result, signal) => this.#apply(result, signal),
    });
    collectStates(metrics, () => this.list(), this.#context.handlers);
  }

  /**
   * Watches and registers until the signal aborts. Plugins stay registered with their handlers afterwards, since they
   * keep running when the agent stops.
   */
  async run(signal: AbortSignal): Promise<void> {
    try {
      await this.#watcher.run(signal);
    } finally {
      for (const { scope } of this.#sessions.values()) scope.abort(signal.reason);
      await Promise.all(this.#running);
      this.#sessions.clear();
    }
  }

  /** The status of every known socket, sorted by path. */
  list(): PluginStatus[] {
    const statuses = [...this.#sessions.values()].map(({ session }) => session.status());
    return statuses.sort((a, b) => (a.registrationSocket < b.registrationSocket ? -1 : 1));
  }

  /** Fails if a directory cannot be created or read, or no scan succeeded for three rescan intervals. */
  healthCheck(): HealthCheck {
    const check = (): HealthResult => this.#watcher.health();
    return { name: "PluginWatcherReady", kind: "ready", check };
  }

  // Level-triggered: compares the sockets found with the existing sessions. Sessions are ended before others start.
  #apply({ sockets, failures, unread }: ScanResult, signal: AbortSignal): void {
    for (const [path, { scope }] of this.#sessions) {
      // Sessions in a directory that cannot be read now are kept.
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

function collectStates(
  { plugins }: PluginMetrics,
  list: () => PluginStatus[],
  known: ReadonlyMap<string, PluginHandler>,
): void {
  const gauge = plugins as typeof plugins & { collect?: () => void };
  gauge.collect = () => {
    plugins.reset();
    for (const { type = "", state } of list())
      plugins.inc({ type: known.has(type) ? type : "unknown", state });
  };
}
