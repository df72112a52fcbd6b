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
import type { PluginStatus } from "./status.ts";
import type { PluginHandler } from "./types.ts";

/** Times in milliseconds. Everything with a default may be left out. */
export interface PluginManagerOptions {
  /** Absolute paths; made with mode 0750 where missing. */
  directories: readonly string[];
  /** At most one for each plugin type. */
  handlers: readonly PluginHandler[];
  clock: Clock;
  log: Logger;
  registry: Registry;
  /** Names of a type that in-tree plugins own. Default: none. */
  reservedNames?: (type: string) => ReadonlySet<string>;
  /** How often the directories are walked without an event. Default 10 s. */
  rescanIntervalMs?: number;
  /** How often the sockets of registered plugins are connected to. Default 5 s. */
  livenessIntervalMs?: number;
  /** Default 10 s. */
  dialTimeoutMs?: number;
  /** Default 10 s. */
  infoTimeoutMs?: number;
  /** Default 5 s. */
  noticeTimeoutMs?: number;
  /** How long a handler may take to register. Default 30 s. */
  handlerTimeoutMs?: number;
  /** Registered plugins in all. Default 256. */
  maxPlugins?: number;
  /** First handshakes at once; a quarter as many for sockets that have failed before. Default 64. */
  maxHandshakes?: number;
  /** Where endpoints may lie besides `directories`. Default: nowhere. */
  endpointDirectories?: readonly string[];
  /** Users whose plugins are taken besides root and the agent's own user. Default: none. */
  allowedUids?: readonly number[];
  /** Paths of sockets that no plugin may name as its endpoint. Default: none. */
  foreignSockets?: readonly string[];
  limits?: Partial<ScanLimits>;
  /** CPU time that this process has used so far, milliseconds. Default: as the system counts it. */
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
 * Finds plugins by their sockets and registers them with the handler of their type, as the kubelet does.
 * One session for each socket file; `RegisteredPlugins` has the rule of who owns a name.
 */
export class PluginManager implements Runnable {
  readonly name = "pluginManager";
  readonly #context: SessionContext;
  readonly #watcher: SocketWatcher;
  readonly #sessions = new Map<string, RunningSession>();
  readonly #running = new Set<Promise<void>>();
  #sequence = 0;

  constructor(options: PluginManagerOptions) {
    const { clock, log } = options;
    const metrics = createPluginMetrics(options.registry);
    this.#context = {
      clock,
      log,
      metrics,
      handlers: byType(options.handlers),
      registered: new RegisteredPlugins({
        log,
        reservedNames: options.reservedNames ?? (() => new Set()),
        maxPlugins: options.maxPlugins ?? 256,
        onVacancy: () => this.#vacancy(),
        onDeregistered: ({ type, name }, reason) => {
          metrics.deregistrations.inc({ type, reason });
          log.info({ type, plugin: name, reason }, "plugin deregistered");
        },
      }),
      handshakes: {
        first: new Semaphore({ permits: options.maxHandshakes ?? 64 }),
        retries: new Semaphore({ permits: Math.ceil((options.maxHandshakes ?? 64) / 4) }),
      },
      trust: new SocketTrust({
        directories: options.directories,
        endpointDirectories: options.endpointDirectories ?? [],
        allowedUids: options.allowedUids ?? [],
        foreignSockets: options.foreignSockets ?? [],
      }),
      timeouts: {
        dialMs: options.dialTimeoutMs ?? 10_000,
        infoMs: options.infoTimeoutMs ?? 10_000,
        noticeMs: options.noticeTimeoutMs ?? 5_000,
        handlerMs: options.handlerTimeoutMs ?? 30_000,
      },
      liveness: new Liveness(clock, metrics),
      livenessIntervalMs: options.livenessIntervalMs ?? 5_000,
    };
    this.#watcher = new SocketWatcher({
      directories: options.directories,
      limits: { ...defaultLimits, ...options.limits },
      rescanIntervalMs: options.rescanIntervalMs ?? 10_000,
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
   * Watches and registers until the signal aborts. Plugins stay registered with their handlers then: that the
   * agent stops does not mean that they are gone.
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

  /** A snapshot of every socket known, in the order of paths. */
  list(): PluginStatus[] {
    const statuses = [...this.#sessions.values()].map(({ session }) => session.status());
    return statuses.sort((a, b) => (a.registrationSocket < b.registrationSocket ? -1 : 1));
  }

  /** Fails when a directory can't be made or read, or no scan succeeded for three rescan intervals. */
  healthCheck(): HealthCheck {
    const check = (): HealthResult => this.#watcher.health();
    return { name: "PluginWatcherReady", kind: "ready", check };
  }

  // Level-triggered: compares what is there with the sessions there are. Ends come before beginnings.
  #apply({ sockets, failures, unread }: ScanResult, signal: AbortSignal): void {
    for (const [path, { scope }] of this.#sessions) {
      // A directory that can't be read now says nothing about the sockets in it.
      if (sockets.has(path) || isUnder(path, failures) || isUnder(path, unread)) continue;
      this.#sessions.delete(path);
      scope.abort(new NodekeeperError("gone", "its socket was removed"));
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
      throw new NodekeeperError("internal", `two handlers take plugins of type ${handler.type}`);
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
