import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type PluginInfo, RegistrationDefinition } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { InotifyWatches, NodekeeperError, Registry, silentLogger, systemClock } from "@nodekeeper/core/lib";
import { createServer, type Server, ServerError, Status } from "nice-grpc";
import { afterEach, beforeEach } from "vitest";
import type { PluginSettings } from "../context.ts";
import { PluginManager, type PluginManagerOptions } from "../manager.ts";
import type { PluginStatus } from "../status.ts";
import type { PluginHandler, PluginRegistration } from "../types.ts";

/** Creates a temporary directory. Returns its path and a function that removes it. */
export function temporaryDirectory(): { path: string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), "nkp-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** A handler that records its calls, with configurable behavior. */
export class RecordingHandler implements PluginHandler {
  readonly type: string;
  readonly calls: string[] = [];
  readonly serving = new Map<string, PluginRegistration>();
  /** Result of `holdMs` in milliseconds. */
  hold = 0;
  /** Awaited by every call of `register`. */
  onRegister: (registration: PluginRegistration) => Promise<void> | void = () => {};

  readonly inTreeNames: ReadonlySet<string>;

  constructor(type = "ReporterPlugin", inTreeNames: readonly string[] = []) {
    this.type = type;
    this.inTreeNames = new Set(inTreeNames);
  }

  validate({ versions }: { versions: string[] }): void {
    if (versions.includes("v1alpha1")) return;
    throw new NodekeeperError(
      "unsupported",
      `versions ${versions.join(", ")} are not supported; accepted: v1alpha1`,
    );
  }

  async register(registration: PluginRegistration): Promise<void> {
    this.calls.push(`register ${registration.name} ${registration.generation}`);
    await this.onRegister(registration);
    this.serving.set(registration.name, registration);
  }

  holdMs(): number {
    return this.hold;
  }

  forget(name: string): void {
    this.calls.push(`forget ${name}`);
  }

  deregister(registration: PluginRegistration, reason: string): void {
    this.calls.push(`deregister ${registration.name} ${registration.generation}: ${reason}`);
    if (this.serving.get(registration.name)?.generation === registration.generation) {
      this.serving.delete(registration.name);
    }
  }
}

/** A plugin's registration service on a real socket. */
export interface ServedPlugin {
  path: string;
  notices: { pluginRegistered: boolean; error: string }[];
  infoCalls: number;
  /** Number of upcoming notifications that fail. */
  failNotices: number;
  close(): void;
}

export async function servePlugin(
  path: string,
  info: Partial<PluginInfo> = {},
  beforeInfo: () => Promise<void> | void = () => {},
): Promise<ServedPlugin> {
  const server: Server = createServer();
  const served: ServedPlugin = {
    path,
    notices: [],
    infoCalls: 0,
    failNotices: 0,
    close: () => server.forceShutdown(),
  };
  server.add(RegistrationDefinition, {
    async getInfo() {
      served.infoCalls++;
      await beforeInfo();
      return {
        type: "ReporterPlugin",
        name: "plugin",
        endpoint: "",
        supportedVersions: ["v1alpha1"],
        ...info,
      };
    },
    async notifyRegistrationStatus(status) {
      if (served.failNotices-- > 0) throw new ServerError(Status.UNAVAILABLE, "not now");
      served.notices.push(status);
      return {};
    },
  });
  await server.listen(`unix:${path}`);
  return served;
}

/** A running manager and the state that tests inspect. */
export interface RunningManager {
  manager: PluginManager;
  handler: RecordingHandler;
  registry: Registry;
  at(path: string): PluginStatus | undefined;
  stop(): Promise<void>;
}

export interface TestManagerOptions
  extends Partial<Omit<PluginManagerOptions, "settings">>,
    Partial<PluginSettings> {
  inTreeNames?: readonly string[];
}

export function startManager(directory: string, options: TestManagerOptions = {}): RunningManager {
  const {
    handlers,
    clock = systemClock,
    nameStore = { names: () => [], save() {}, remove() {} },
    onChange = () => {},
    watches = new InotifyWatches(silentLogger),
    inTreeNames = [],
    ...settings
  } = options;
  const handler = new RecordingHandler(undefined, inTreeNames);
  const registry = new Registry();
  const manager = new PluginManager({
    settings: {
      directories: [directory],
      endpointDirectories: [],
      allowedUids: [],
      nameOwners: [],
      rescanInterval: 500,
      livenessInterval: 100,
      infoTimeout: 10_000,
      notifyTimeout: 5_000,
      maxPlugins: 256,
      ...settings,
    },
    handlers: handlers ?? [handler],
    clock,
    log: silentLogger,
    registry,
    nameStore,
    onChange,
    watches,
  });
  const controller = new AbortController();
  const running = manager.run(controller.signal);
  return {
    manager,
    handler,
    registry,
    at: (path) => manager.list().find((status) => status.registrationSocket === path),
    stop: async () => {
      controller.abort(new NodekeeperError("stopped", "test is over"));
      await running;
    },
  };
}

/**
 * Creates a temporary directory for each test of a file. At the end of the test, stops the plugins and managers in the
 * directory and removes it.
 */
export function useTestPlugins() {
  let directory: ReturnType<typeof temporaryDirectory>;
  const plugins: ServedPlugin[] = [];
  const managers: RunningManager[] = [];
  beforeEach(() => {
    directory = temporaryDirectory();
  });
  afterEach(async () => {
    for (const plugin of plugins.splice(0)) plugin.close();
    await Promise.all(managers.splice(0).map((manager) => manager.stop()));
    directory.remove();
  });
  return {
    /** The plugins that `serve` started. */
    plugins,
    at: (name = "") => join(directory.path, name),
    async serve(...args: Parameters<typeof servePlugin>): Promise<ServedPlugin> {
      const served = await servePlugin(...args);
      plugins.push(served);
      return served;
    },
    start(options: TestManagerOptions = {}): RunningManager {
      const running = startManager(directory.path, options);
      managers.push(running);
      return running;
    },
  };
}
