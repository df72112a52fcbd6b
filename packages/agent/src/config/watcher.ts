import type { FSWatcher } from "node:fs";
import { dirname } from "node:path";
import { RestartNeeded } from "@nodekeeper/api/errors";
import { type AgentConfiguration, assemble, changedPaths, settings, valueAt } from "@nodekeeper/api/settings";
import {
  type Clock,
  type InotifyWatches,
  type Logger,
  type Runnable,
  stampOf,
  WakeableSleep,
} from "@nodekeeper/core/lib";
import { type ConfigurationSources, loadConfiguration } from "./load.ts";
import type { ConfigMetrics } from "./metrics.ts";

export interface ConfigurationWatcherOptions {
  /** Sources from which the configuration is loaded at startup and on reload. */
  sources: ConfigurationSources;
  initial: AgentConfiguration;
  clock: Clock;
  log: Logger;
  /** Calls `onSignal` on each SIGHUP. Returns a function that unsubscribes. */
  subscribe(onSignal: () => void): () => void;
  /** Called when live settings change, with their new values and the running values of all other settings. */
  onChange(configuration: AgentConfiguration, changedPaths: readonly string[]): void;
  metrics: ConfigMetrics;
  /** Starts the inotify watch of the file's directory. */
  watches: InotifyWatches;
}

const DEBOUNCE_MS = 200;
const CHECK_INTERVAL_MS = 10_000;

/**
 * Reloads the configuration on SIGHUP and when its file changes, including symlink swaps of ConfigMap volumes. If the
 * file is invalid, the running configuration is kept. `run` first checks for changes since the configuration was
 * loaded.
 */
export class ConfigurationWatcher implements Runnable {
  readonly name = "configuration watcher";
  readonly #options: ConfigurationWatcherOptions;
  #running: AgentConfiguration;
  #fingerprint: string | undefined;
  #isForced = false;
  readonly #changes = new WakeableSleep();

  constructor(options: ConfigurationWatcherOptions) {
    this.#options = options;
    this.#running = options.initial;
    this.#fingerprint = options.sources.file === undefined ? undefined : "not read yet";
  }

  async run(signal: AbortSignal): Promise<void> {
    const stopSignals = this.#options.subscribe(() => {
      this.#isForced = true;
      this.#changes.wake();
    });
    let watcher: FSWatcher | undefined;
    try {
      while (!signal.aborted) {
        watcher ??= this.#watchDirectory(() => {
          watcher = undefined;
        });
        await this.#check();
        await this.#pause(signal);
      }
    } finally {
      stopSignals();
      watcher?.close();
    }
  }

  async #check(): Promise<void> {
    const isForced = this.#isForced;
    this.#isForced = false;
    const fingerprint = await this.#readFingerprint();
    if (!isForced && fingerprint === this.#fingerprint) return;
    this.#fingerprint = fingerprint;
    await this.#reload();
  }

  async #reload(): Promise<void> {
    const { clock, log, metrics, sources } = this.#options;
    try {
      const { configuration } = await loadConfiguration(sources);
      metrics.reloaded(this.#apply(configuration), clock.now());
    } catch (error) {
      metrics.reloaded("rejected", clock.now());
      log.error({ err: error }, "new configuration rejected, keeping the running one");
    }
  }

  #apply(loaded: AgentConfiguration): "applied" | "unchanged" {
    const { log, onChange } = this.#options;
    const paths = changedPaths(this.#running, loaded);
    const changed = settings.filter(({ path }) => paths.includes(path));
    const live = changed.filter(({ isLive }) => isLive).map(({ path }) => path);
    const restartNeeded = changed.filter(({ isLive }) => !isLive).map(({ path }) => path);

    this.#running = assemble(({ path, isLive }) => valueAt(isLive ? loaded : this.#running, path));
    if (restartNeeded.length > 0)
      log.warn({ errorId: RestartNeeded.id, settings: restartNeeded }, "changed settings need a restart");
    if (live.length === 0) return "unchanged";
    log.info({ settings: live }, "configuration reloaded");
    onChange(this.#running, live);
    return "applied";
  }

  // Waits for a change or for the periodic check, which covers changes without an inotify event. Changes are debounced,
  // because editors and the kubelet replace a file in several steps.
  async #pause(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    try {
      if (await this.#changes.wait(clock, CHECK_INTERVAL_MS, signal)) await clock.sleep(DEBOUNCE_MS, signal);
    } catch {
      // The caller's loop checks the signal.
    }
    this.#changes.clear();
  }

  // Watches the directory rather than the file, which may be replaced or be a symlink that is swapped.
  #watchDirectory(onBroken: () => void): FSWatcher | undefined {
    const { file } = this.#options.sources;
    if (file === undefined) return undefined;
    return this.#options.watches.start(dirname(file), () => this.#changes.wake(), onBroken);
  }

  async #readFingerprint(): Promise<string | undefined> {
    const { file } = this.#options.sources;
    if (file === undefined) return undefined;
    try {
      return await stampOf(file);
    } catch (error) {
      return `unreadable: ${(error as NodeJS.ErrnoException).code}`;
    }
  }
}
