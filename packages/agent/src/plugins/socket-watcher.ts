import { PluginDirectorySkipped, PluginDirectoryUnreadable } from "@nodekeeper/api/errors";
import {
  type Clock,
  type HealthResult,
  type Histogram,
  type InotifyWatches,
  type Logger,
  sleepOrAbort,
  WakeableSleep,
} from "@nodekeeper/core/lib";
import { DirectoryWatches } from "./directory-watches.ts";
import { type ScanLimits, type ScanResult, scanForSockets } from "./socket-scan.ts";

export interface SocketWatcherOptions {
  directories: readonly string[];
  limits: ScanLimits;
  rescanIntervalMs: number;
  clock: Clock;
  /** Returns the CPU time used by this process in milliseconds. */
  cpuMs(): number;
  log: Logger;
  watches: InotifyWatches;
  scanSeconds: Histogram;
  isKnown(path: string): boolean;
  /** Called with the result of every scan. `signal` is the one passed to `run`. */
  onScan(result: ScanResult, signal: AbortSignal): void;
}

// A flood of events causes at most 20 scans per second and uses at most about a tenth of a core. The gap is a
// multiple of the scan's CPU time, not of its duration, which includes waiting. It is bounded, because new
// plugins wait for it.
const minGapMs = 50;
const maxGapMs = 500;
const gapPerCpuTime = 10;

/** Scans when a directory changes, and every `rescanInterval`. */
export class SocketWatcher {
  readonly #options: SocketWatcherOptions;
  readonly #changes = new WakeableSleep();
  #lastGood: number | undefined;
  #startedAt = 0;
  #failures: ReadonlyMap<string, string> = new Map();
  #leftOut = "";

  constructor(options: SocketWatcherOptions) {
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, rescanIntervalMs } = this.#options;
    using watches = new DirectoryWatches(this.#options.watches, () => this.#changes.wake());
    this.#startedAt = clock.monotonic();
    while (!signal.aborted) {
      this.#changes.clear();
      const cpuBefore = this.#options.cpuMs();
      await this.#scan(watches, signal);
      const usedMs = this.#options.cpuMs() - cpuBefore;
      const gapMs = Math.min(Math.max(usedMs * gapPerCpuTime, minGapMs), maxGapMs);
      await sleepOrAbort(clock, gapMs, signal);
      await this.#changes.waitOrAbort(clock, Math.max(rescanIntervalMs - gapMs, 0), signal);
    }
  }

  health(): HealthResult {
    const { clock, rescanIntervalMs } = this.#options;
    const [failure] = this.#failures;
    if (failure)
      return { ok: false, message: `${failure[0]}: ${failure[1]}`, errorId: PluginDirectoryUnreadable.id };
    const quietMs = clock.monotonic() - (this.#lastGood ?? this.#startedAt);
    if (quietMs > 3 * rescanIntervalMs) {
      const message = `no successful scan for ${Math.round(quietMs / 1000)} s`;
      return { ok: false, message, errorId: PluginDirectoryUnreadable.id };
    }
    if (this.#lastGood === undefined) return { ok: false, message: "no scan has finished yet" };
    return { ok: true, message: `${this.#options.directories.length} directories watched` };
  }

  async #scan(watches: DirectoryWatches, signal: AbortSignal): Promise<void> {
    const { clock, log, scanSeconds } = this.#options;
    const startedAt = clock.monotonic();
    const result = await scanForSockets({
      directories: this.#options.directories,
      limits: this.#options.limits,
      onDirectory: (path, identity) => watches.keep(path, identity),
      isKnown: (path) => this.#options.isKnown(path),
    });
    watches.forgetOthers();
    const tookMs = clock.monotonic() - startedAt;
    scanSeconds.observe(tookMs / 1000);
    this.#report(result);
    if (result.failures.size === 0) this.#lastGood = clock.monotonic();
    if (!signal.aborted) this.#options.onScan(result, signal);
    log.debug({ sockets: result.sockets.size, tookMs }, "plugin directories scanned");
  }

  // Logs a problem when it starts or changes, not at every scan.
  #report({ failures, unread, overflows }: ScanResult): void {
    const { log } = this.#options;
    for (const [directory, reason] of failures) {
      if (this.#failures.get(directory) !== reason)
        log.error(
          { errorId: PluginDirectoryUnreadable.id, directory, reason },
          "failed to read plugin directory",
        );
    }
    this.#failures = failures;
    const left = [...overflows, ...unread.values()].slice(0, 10).join("; ");
    if (left !== "" && left !== this.#leftOut)
      log.warn(
        { errorId: PluginDirectorySkipped.id, leftOut: left },
        "parts of plugin directories are skipped",
      );
    this.#leftOut = left;
  }
}
