import { PluginDirectorySkipped, PluginDirectoryUnreadable } from "@nodekeeper/api/errors";
import { counted } from "@nodekeeper/api/wording";
import { type HealthResult, type InotifyWatches, sleepOrAbort, WakeableSleep } from "@nodekeeper/core/lib";
import type { PluginContext, PluginSettings } from "./context.ts";
import { DirectoryWatches } from "./directory-watches.ts";
import { type Known, type ScanLimits, type ScanResult, scanForSockets } from "./socket-scan.ts";

type Context = Pick<PluginContext, "clock" | "log" | "metrics"> & {
  watches: InotifyWatches;
  /** Returns the CPU time used by this process in milliseconds. */
  cpuMs: () => number;
  settings: Pick<PluginSettings, "directories" | "limits" | "rescanInterval">;
};

const defaultLimits: ScanLimits = {
  maxDepth: 8,
  maxDirectories: 256,
  maxEntries: 100_000,
  maxSockets: 1_024,
};
// A flood of events causes at most 20 scans per second and uses at most about a tenth of a core. The gap is a
// multiple of the scan's CPU time, not of its duration, which includes waiting. It is bounded, because new
// plugins wait for it.
const minGapMs = 50;
const maxGapMs = 500;
const gapPerCpuTime = 10;

/** Scans when a directory changes, and every `rescanInterval`. */
export class SocketWatcher {
  readonly #context: Context;
  readonly #changes = new WakeableSleep();
  #lastGood: number | undefined;
  #startedAt = 0;
  #failures: ReadonlyMap<string, string> = new Map();
  #leftOut = "";

  constructor(context: Context) {
    this.#context = context;
  }

  /**
   * Yields the result of every scan until the signal aborts.
   * @param known the sockets that are preferred if there are too many
   */
  async *scans(known: Known, signal: AbortSignal): AsyncGenerator<ScanResult> {
    const { clock, cpuMs, settings } = this.#context;
    using watches = new DirectoryWatches(this.#context.watches, () => this.#changes.wake());
    this.#startedAt = clock.monotonic();
    while (!signal.aborted) {
      this.#changes.clear();
      const cpuBefore = cpuMs();
      const result = await this.#scan(watches, known);
      if (!signal.aborted) yield result;
      const usedMs = cpuMs() - cpuBefore;
      const gapMs = Math.min(Math.max(usedMs * gapPerCpuTime, minGapMs), maxGapMs);
      await sleepOrAbort(clock, gapMs, signal);
      await this.#changes.waitOrAbort(clock, Math.max(settings.rescanInterval - gapMs, 0), signal);
    }
  }

  health(): HealthResult {
    const { clock, settings } = this.#context;
    const [failure] = this.#failures;
    if (failure)
      return { ok: false, message: `${failure[0]}: ${failure[1]}`, errorId: PluginDirectoryUnreadable.id };
    const quietMs = clock.monotonic() - (this.#lastGood ?? this.#startedAt);
    if (quietMs > 3 * settings.rescanInterval) {
      const message = `no successful scan for ${Math.round(quietMs / 1000)} s`;
      return { ok: false, message, errorId: PluginDirectoryUnreadable.id };
    }
    if (this.#lastGood === undefined) return { ok: false, message: "no scan has finished yet" };
    return {
      ok: true,
      message: `${counted(settings.directories.length, "directory", "directories")} watched`,
    };
  }

  async #scan(watches: DirectoryWatches, known: Known): Promise<ScanResult> {
    const { clock, log, metrics, settings } = this.#context;
    const startedAt = clock.monotonic();
    const result = await scanForSockets({
      directories: settings.directories,
      limits: { ...defaultLimits, ...settings.limits },
      onDirectory: (path, identity) => watches.keep(path, identity),
      known,
    });
    watches.forgetOthers();
    const tookMs = clock.monotonic() - startedAt;
    metrics.scanSeconds.observe(tookMs / 1000);
    this.#report(result);
    if (result.failures.size === 0) this.#lastGood = clock.monotonic();
    log.debug({ sockets: result.sockets.size, tookMs }, "plugin directories scanned");
    return result;
  }

  // Logs a problem when it starts or changes, not at every scan.
  #report({ failures, unread, overflows }: ScanResult): void {
    const { log } = this.#context;
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
