import { watch } from "node:fs";
import { stat } from "node:fs/promises";
import { dirname } from "node:path";
import { type Clock, type Logger, type Runnable, toError, WakeableSleep } from "@nodekeeper/core/lib";
import { type ConfigurationSources, loadConfiguration } from "./load.ts";
import type { ConfigMetrics, ReloadOutcome } from "./metrics.ts";
import type { AgentConfiguration } from "./schema.ts";
import { assemble, changedPaths, settings, valueAt } from "./settings.ts";

/** Result of the last reload. */
export interface ReloadState {
  /** Wall clock time of the last reload, milliseconds since the epoch; undefined before the first. */
  at: number | undefined;
  /** `applied`: live settings changed; `unchanged`: none did; `rejected`: the running configuration is kept. */
  outcome: ReloadOutcome | undefined;
  /** Why the configuration was rejected. */
  error: Error | undefined;
  /** Settings whose new values need a restart. */
  restartNeeded: readonly string[];
}

export interface ConfigurationWatcherOptions {
  /** Sources the configuration was loaded from at the start and is reloaded from. */
  sources: ConfigurationSources;
  initial: AgentConfiguration;
  clock: Clock;
  log: Logger;
  /** Calls `onSignal` on each SIGHUP. Returns a function that unsubscribes. */
  subscribe(onSignal: () => void): () => void;
  /** Called when live settings changed, with their new values and the running values of all other settings. */
  onChange(configuration: AgentConfiguration, changedPaths: readonly string[]): void;
  onRejected?(error: Error): void;
  metrics?: ConfigMetrics;
}

const DEBOUNCE_MS = 200;
const CHECK_INTERVAL_MS = 10_000;

/**
 * Reloads the configuration on SIGHUP and when its file changes, including a swapped symlink as in ConfigMap mounts.
 * An invalid file is rejected and the running configuration kept. `run` starts with a check for changes since the
 * configuration was loaded.
 */
export class ConfigurationWatcher implements Runnable {
  readonly name = "configuration watcher";
  readonly #options: ConfigurationWatcherOptions;
  #running: AgentConfiguration;
  #fingerprint: string | undefined;
  #isForced = false;
  readonly #changes = new WakeableSleep();
  #state: ReloadState = { at: undefined, outcome: undefined, error: undefined, restartNeeded: [] };

  constructor(options: ConfigurationWatcherOptions) {
    this.#options = options;
    this.#running = options.initial;
    this.#fingerprint = options.sources.file === undefined ? undefined : "not read yet";
  }

  /** The running configuration. */
  get configuration(): AgentConfiguration {
    return this.#running;
  }

  get state(): ReloadState {
    return this.#state;
  }

  async run(signal: AbortSignal): Promise<void> {
    const stopSignals = this.#options.subscribe(() => {
      this.#isForced = true;
      this.#changes.wake();
    });
    const stopWatching = this.#watchFolder();
    try {
      while (!signal.aborted) {
        await this.#check();
        await this.#pause(signal);
      }
    } finally {
      stopSignals();
      stopWatching();
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
    const { clock, log, metrics, onRejected, sources } = this.#options;
    try {
      const { configuration } = await loadConfiguration(sources);
      const outcome = this.#apply(configuration);
      metrics?.reloaded(outcome, clock.now());
    } catch (error) {
      const rejection = toError(error);
      this.#state = { ...this.#state, at: clock.now(), outcome: "rejected", error: rejection };
      metrics?.reloaded("rejected", clock.now());
      log.error({ err: rejection }, "new configuration rejected, keeping the running one");
      onRejected?.(rejection);
    }
  }

  #apply(loaded: AgentConfiguration): "applied" | "unchanged" {
    const { clock, log, onChange } = this.#options;
    const paths = changedPaths(this.#running, loaded);
    const changed = settings.filter(({ path }) => paths.includes(path));
    const live = changed.filter(({ isLive }) => isLive).map(({ path }) => path);
    const restartNeeded = changed.filter(({ isLive }) => !isLive).map(({ path }) => path);
    const outcome = live.length > 0 ? "applied" : "unchanged";

    this.#running = assemble(({ path, isLive }) => valueAt(isLive ? loaded : this.#running, path));
    this.#state = { at: clock.now(), outcome, error: undefined, restartNeeded };
    if (restartNeeded.length > 0)
      log.warn({ errorId: "NK1005", settings: restartNeeded }, "changed settings need a restart");
    if (live.length > 0) {
      log.info({ settings: live }, "configuration reloaded");
      onChange(this.#running, live);
    }
    return outcome;
  }

  // Waits until a change is noticed, plus a debounce since editors and the kubelet change a file in several steps; or
  // until the periodic check, for changes without an inotify event.
  async #pause(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    try {
      if (await this.#changes.wait(clock, CHECK_INTERVAL_MS, signal)) await clock.sleep(DEBOUNCE_MS, signal);
    } catch {
      // The loop that waits sees the abort.
    }
    this.#changes.clear();
  }

  // Watches the directory, not the file: the file may be replaced, or be a symlink that is swapped.
  #watchFolder(): () => void {
    const { log, sources } = this.#options;
    if (sources.file === undefined) return () => {};
    const onError = (error: unknown) =>
      log.warn(
        { errorId: "NK1006", err: error },
        "failed to watch the configuration directory, checking periodically",
      );
    try {
      const watcher = watch(dirname(sources.file), { persistent: false }, () => this.#changes.wake());
      watcher.on("error", onError);
      return () => watcher.close();
    } catch (error) {
      onError(error);
      return () => {};
    }
  }

  async #readFingerprint(): Promise<string | undefined> {
    const { file } = this.#options.sources;
    if (file === undefined) return undefined;
    try {
      const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true });
      return [dev, ino, size, mtimeNs, ctimeNs].join(" ");
    } catch (error) {
      return `unreadable: ${(error as NodeJS.ErrnoException).code}`;
    }
  }
}
