import { randomBytes } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { ClaimNotRecorded } from "@nodekeeper/api/errors";
import { DRAResourceHealthDefinition } from "@nodekeeper/core/gen/drahealth/v1/api.ts";
import { type Clock, type Logger, sleepOrAbort } from "@nodekeeper/core/lib";
import { isSocketName, KubeletPlugin, type PluginCalls, pluginAt } from "./kubelet-plugin.ts";

export interface StandbyPluginsOptions {
  /** The kubelet's plugin registry directory. */
  registryDirectory: string;
  clock: Clock;
  log: Logger;
}

const REGISTRATION_WAIT_MS = 5_000;
// On a busy node the other agent responds slowly, and the drivers of one that does not respond would not be registered
// for some time. A socket without a listener fails immediately.
const GET_INFO_MS = 5_000;
const POLL_MS = 50;

/**
 * The kubelet's DRA plugins of an agent that is about to take over from another agent, for that agent's drivers.
 *
 * 1. The kubelet calls the plugin of a driver that registered last (pkg/kubelet/cm/dra/plugin/dra_plugin_manager.go,
 *    since 1.33). These plugins register while the other agent still serves its own, so that no driver is unregistered.
 * 2. Calls wait until this agent has taken over.
 */
export class StandbyPlugins {
  readonly #plugins = new Map<string, KubeletPlugin>();
  readonly #calls = Promise.withResolvers<PluginCalls>();

  /**
   * Starts a plugin for each driver that another agent serves. Waits until the kubelet has registered them, at most 5
   * s.
   */
  static async start(options: StandbyPluginsOptions, signal: AbortSignal): Promise<StandbyPlugins> {
    const standby = new StandbyPlugins();
    const instance = randomBytes(4).toString("hex");
    for (const { driver, hasHealth } of await pluginsOfOthers(options, signal)) {
      if (!standby.#plugins.has(driver)) standby.#start(driver, hasHealth, instance, options);
    }
    await standby.#untilRegistered(options.clock, signal);
    return standby;
  }

  private constructor() {
    // Each call handles the rejection.
    this.#calls.promise.catch(() => {});
  }

  /** Names of the drivers whose plugin was not taken yet. */
  get drivers(): string[] {
    return [...this.#plugins.keys()];
  }

  /** Returns the plugin of a driver, which the caller must stop. */
  take(driver: string): KubeletPlugin | undefined {
    const plugin = this.#plugins.get(driver);
    this.#plugins.delete(driver);
    return plugin;
  }

  /** Passes waiting and later calls to the agent. */
  activate(calls: PluginCalls): void {
    this.#calls.resolve(calls);
  }

  /** Stops the plugins that were not taken. The kubelet then calls the other agent's plugins again. */
  async stop(): Promise<void> {
    this.#calls.reject(new ClaimNotRecorded({ problem: "the other agent did not hand over" }));
    await Promise.all([...this.#plugins.values()].map((plugin) => plugin.stop()));
    this.#plugins.clear();
  }

  #start(driver: string, hasHealth: boolean, instance: string, options: StandbyPluginsOptions): void {
    const active = this.#calls.promise;
    const calls: PluginCalls = {
      prepare: async (...call) => (await active).prepare(...call),
      unprepare: async (...call) => (await active).unprepare(...call),
      health: async function* (...call) {
        yield* (await active).health(...call);
      },
    };
    const plugin = new KubeletPlugin({ ...options, driver, instance, hasHealth, calls });
    this.#plugins.set(driver, plugin);
  }

  async #untilRegistered(clock: Clock, signal: AbortSignal): Promise<void> {
    const latest = clock.monotonic() + REGISTRATION_WAIT_MS;
    const isWaiting = () =>
      [...this.#plugins.values()].some(({ registration }) => registration.state === "waiting");
    while (isWaiting() && clock.monotonic() < latest && !signal.aborted)
      await sleepOrAbort(clock, POLL_MS, signal);
  }
}

async function pluginsOfOthers(options: StandbyPluginsOptions, signal: AbortSignal) {
  const { registryDirectory } = options;
  const names = (await readdir(registryDirectory).catch(() => [])).filter(isSocketName);
  const found = await Promise.all(
    names.map((name) =>
      pluginAt(join(registryDirectory, name), { ...options, timeoutMs: GET_INFO_MS }, signal),
    ),
  );
  return found.flatMap((plugin) => {
    if (!plugin) return [];
    const hasHealth = plugin.supportedVersions.includes(DRAResourceHealthDefinition.fullName);
    return [{ driver: plugin.name, hasHealth }];
  });
}
