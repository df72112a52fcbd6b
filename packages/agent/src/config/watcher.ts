import { watch } from "node:fs";
import { stat } from "node:fs/promises";
import { dirname } from "node:path";
import { type Clock, type Logger, type Runnable, toError, WakeableSleep } from "@nodekeeper/core/lib";
import { type ConfigurationSources, loadConfiguration } from "./load.ts";
import type { ConfigMetrics, ReloadOutcome } from "./metrics.ts";
import type { AgentConfiguration } from "./schema.ts";
import { assemble, changedPaths, settings, valueAt } from "./settings.ts";

/** How the last look at the file ended. */
export interface ReloadState {
  /** Wall time of the last reload, milliseconds; undefined before the first. */
  at: number | undefined;
  /** `applied`: live settings changed; `unchanged`: none did; `rejected`: the old configuration stays. */
  outcome: ReloadOutcome | undefined;
  /** Why it was rejected. */
  error: Error | undefined;
  /** Settings whose new values wait for a restart. */
  restartNeeded: readonly string[];
}

export interface ConfigurationWatcherOptions {
  /** What the agent started with, and what it is loaded from again. */
  sources: ConfigurationSources;
  initial: AgentConfiguration;
  clock: Clock;
  log: Logger;
  /** Calls back at each SIGHUP; gives the way to stop that. */
  subscribe(onSignal: () => void): () => void;
  /** Live settings changed. `configuration` has the new values of these and the running values of all others. */
  onChange(configuration: AgentConfiguration, changedPaths: readonly string[]): void;
  onRejected?(error: Error): void;
  metrics?: ConfigMetrics;
}

const DEBOUNCE_MS = 200;
const CHECK_INTERVAL_MS = 10_000;

/**
 * Loads the configuration again on SIGHUP and when its file changes, also by a swapped symlink as in ConfigMap
 * mounts. A wrong new file changes nothing. A file that changed since the start is seen when `run` begins.
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

  /** The configuration the agent runs with now. */
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
      log.error({ err: rejection }, "the new configuration is refused; the old one stays");
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
      log.warn({ settings: restartNeeded }, "changed settings need a restart to apply");
    if (live.length > 0) {
      log.info({ settings: live }, "configuration reloaded");
      onChange(this.#running, live);
    }
    return outcome;
  }

  // Until something was noticed and has settled, since editors and the kubelet change a file in several steps; or
  // until the periodic check, for what no event told of.
  async #pause(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    try {
      if (await this.#changes.wait(clock, CHECK_INTERVAL_MS, signal)) await clock.sleep(DEBOUNCE_MS, signal);
    } catch {
      // The loop that waits sees the abort.
    }
    this.#changes.clear();
  }

  // The folder and not the file: the file may be replaced, or be reached over a symlink that is swapped there.
  #watchFolder(): () => void {
    const { log, sources } = this.#options;
    if (sources.file === undefined) return () => {};
    const onError = (error: unknown) =>
      log.warn({ err: error }, "the configuration's folder can't be watched; checking periodically");
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
