import {
  type Clock,
  type HealthResult,
  type Histogram,
  type Logger,
  WakeableSleep,
} from "@nodekeeper/core/lib";
import { DirectoryWatches } from "./directory-watches.ts";
import { type ScanLimits, type ScanResult, scanForSockets } from "./socket-scan.ts";

export interface SocketWatcherOptions {
  directories: readonly string[];
  limits: ScanLimits;
  rescanIntervalMs: number;
  clock: Clock;
  /** CPU time used by this process, milliseconds. */
  cpuMs(): number;
  log: Logger;
  scanSeconds: Histogram;
  isKnown(path: string): boolean;
  /** Called after every scan with its result; `signal` is the one passed to `run`. */
  onScan(result: ScanResult, signal: AbortSignal): void;
}

// A flood of events causes at most 20 scans a second and uses at most about a tenth of a core. The gap is a multiple of the
// scan's CPU time rather than its duration, which includes waiting; it is bounded, since new plugins wait for its end.
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
  #watchTrouble: string | undefined;

  constructor(options: SocketWatcherOptions) {
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, rescanIntervalMs } = this.#options;
    using watches = new DirectoryWatches(this.#options.log, () => this.#changes.wake());
    this.#startedAt = clock.monotonic();
    while (!signal.aborted) {
      this.#changes.clear();
      const cpuBefore = this.#options.cpuMs();
      await this.#scan(watches, signal);
      const usedMs = this.#options.cpuMs() - cpuBefore;
      const gapMs = Math.min(Math.max(usedMs * gapPerCpuTime, minGapMs), maxGapMs);
      await clock.sleep(gapMs, signal).catch(() => {});
      await this.#changes.wait(clock, Math.max(rescanIntervalMs - gapMs, 0), signal).catch(() => {});
    }
  }

  health(): HealthResult {
    const { clock, rescanIntervalMs } = this.#options;
    const [failure] = this.#failures;
    if (failure) return { ok: false, message: `${failure[0]}: ${failure[1]}`, errorId: "NK1317" };
    const quietMs = clock.monotonic() - (this.#lastGood ?? this.#startedAt);
    if (quietMs > 3 * rescanIntervalMs) {
      const message = `no successful scan for ${Math.round(quietMs / 1000)} s`;
      return { ok: false, message, errorId: "NK1317" };
    }
    if (this.#lastGood === undefined) return { ok: false, message: "no scan has finished yet" };
    if (this.#watchTrouble) return { ok: true, message: this.#watchTrouble };
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
    this.#watchTrouble = watches.trouble;
    this.#report(result);
    if (result.failures.size === 0) this.#lastGood = clock.monotonic();
    if (!signal.aborted) this.#options.onScan(result, signal);
    log.debug({ sockets: result.sockets.size, tookMs }, "plugin directories scanned");
  }

  // Logs a problem when it starts or changes, not on every scan.
  #report({ failures, unread, overflows }: ScanResult): void {
    const { log } = this.#options;
    for (const [directory, reason] of failures) {
      if (this.#failures.get(directory) !== reason)
        log.error({ errorId: "NK1317", directory, reason }, "failed to read plugin directory");
    }
    this.#failures = failures;
    const left = [...overflows, ...unread.values()].slice(0, 10).join("; ");
    if (left !== "" && left !== this.#leftOut)
      log.warn({ errorId: "NK1318", leftOut: left }, "parts of plugin directories are skipped");
    this.#leftOut = left;
  }
}
