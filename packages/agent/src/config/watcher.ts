import type { FSWatcher } from "node:fs";
import { dirname } from "node:path";
import { ConfigurationRefused, messageOf, RestartNeeded } from "@nodekeeper/api/errors";
import { type AgentConfiguration, assemble, changedPaths, settings, valueAt } from "@nodekeeper/api/settings";
import {
  type Clock,
  type HealthCheck,
  type InotifyWatches,
  type Logger,
  type Runnable,
  stampOf,
  WakeableSleep,
} from "@nodekeeper/core/lib";
import { keepLastGood, lastGoodPath } from "./last-good.ts";
import { type ConfigurationSources, loadConfiguration } from "./load.ts";
import type { ConfigMetrics, ReloadOutcome } from "./metrics.ts";
import { ConfigurationError } from "./problem.ts";

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
  /** Called when the configuration is rejected: once per set of problems, and again after each SIGHUP. */
  onRefused(problems: string): void;
  metrics: ConfigMetrics;
  /** Starts the inotify watch of the file's directory. */
  watches: InotifyWatches;
}

const DEBOUNCE_MS = 200;
const CHECK_INTERVAL_MS = 10_000;
const LONGEST_MESSAGE = 2_000;
// Initial fingerprint. Differs from any stamp of a file, so the first check reads the file.
const NOT_READ = "not read yet";

/**
 * Reloads the configuration on SIGHUP and when its file changes, including symlink swaps of ConfigMap volumes. If the
 * file is invalid, the running configuration is kept, and the file is read again every 10 s. Each accepted text is
 * stored in the state directory for a start with an invalid file. `run` first checks for changes since the
 * configuration was loaded.
 */
export class ConfigurationWatcher implements Runnable {
  readonly name = "configuration watcher";
  readonly #options: ConfigurationWatcherOptions;
  #running: AgentConfiguration;
  #fingerprint: string | undefined;
  #isForced = false;
  #problems: string | undefined;
  /** An accepted text that could not be kept. */
  #unkept: string | undefined;
  readonly #changes = new WakeableSleep();

  constructor(options: ConfigurationWatcherOptions) {
    this.#options = options;
    this.#running = options.initial;
    const { file } = options.sources;
    if (file === undefined) return;
    this.#fingerprint = NOT_READ;
  }

  /** Fails until the file has been read, and while it is rejected: another configuration is then in force. */
  healthCheck(): HealthCheck {
    return {
      name: "ConfigurationAccepted",
      kind: "ready",
      check: () => {
        if (this.#problems !== undefined)
          return { ok: false, message: this.#problems, errorId: ConfigurationRefused.id };
        const isRead = this.#fingerprint !== NOT_READ;
        return { ok: isRead, message: isRead ? "" : `${this.#options.sources.file} is not read yet` };
      },
    };
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
    if (this.#unkept !== undefined) this.#keep(this.#unkept);
    const fingerprint = await this.#readFingerprint();
    if (!isForced && fingerprint === this.#fingerprint && this.#problems === undefined) return;
    await this.#reload(isForced);
    this.#fingerprint = fingerprint;
  }

  async #reload(isForced: boolean): Promise<void> {
    const { clock, metrics, sources } = this.#options;
    const loaded = await loadConfiguration(sources).catch((error: unknown) => {
      this.#refuse(error, isForced);
    });
    if (!loaded) return;
    this.#problems = undefined;
    metrics.reloaded(this.#apply(loaded.configuration, loaded.text), clock.now());
  }

  // Logs each reason once, and again after a SIGHUP. A rejected file is read again at each check, even if unchanged.
  #refuse(error: unknown, isForced: boolean): void {
    const { clock, log, metrics, onRefused } = this.#options;
    const reason = error instanceof ConfigurationError ? error.summary : messageOf(error);
    const problems = `The last good configuration is in force: ${reason.slice(0, LONGEST_MESSAGE)}`;
    if (problems === this.#problems && !isForced) return;
    this.#problems = problems;
    metrics.reloaded("rejected", clock.now());
    log.error({ err: error }, "new configuration rejected, keeping the running one");
    onRefused(problems);
  }

  #apply(loaded: AgentConfiguration, text: string | undefined): ReloadOutcome {
    const { log, onChange } = this.#options;
    const paths = changedPaths(this.#running, loaded);
    const changed = settings.filter(({ path }) => paths.includes(path));
    const live = changed.filter(({ isLive }) => isLive).map(({ path }) => path);
    const restartNeeded = changed.filter(({ isLive }) => !isLive).map(({ path }) => path);

    this.#running = assemble(({ path, isLive }) => valueAt(isLive ? loaded : this.#running, path));
    if (restartNeeded.length > 0)
      log.warn({ errorId: RestartNeeded.id, settings: restartNeeded }, "changed settings need a restart");
    // Kept even if changed settings need a restart, because a restart would use this text, too.
    this.#keep(text);
    if (live.length === 0) return "unchanged";
    log.info({ settings: live }, "configuration reloaded");
    onChange(this.#running, live);
    return "applied";
  }

  #keep(text: string | undefined): void {
    const { sources, log } = this.#options;
    if (sources.file === undefined || text === undefined) return;
    try {
      const { stateDir } = this.#running;
      const damage = keepLastGood(stateDir, { file: sources.file, text });
      if (damage !== undefined)
        log.warn(
          { path: lastGoodPath(stateDir), reason: damage },
          "replaced a last good configuration that could not be read",
        );
      this.#unkept = undefined;
    } catch (error) {
      if (this.#unkept !== text) log.warn({ err: error }, "failed to save the last good configuration");
      this.#unkept = text;
    }
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
