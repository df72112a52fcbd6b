import { randomBytes } from "node:crypto";
import type { Clock, Logger } from "@nodekeeper/core/lib";
import type { PreparedDevice } from "./cdi-file.ts";
import type { ClaimReference } from "./claim-reader.ts";
import type { ClaimRecords } from "./claim-records.ts";
import type { DriverState, DriverStates } from "./driver-state.ts";
import { KubeletPlugin } from "./kubelet-plugin.ts";

export interface KubeletPluginsOptions {
  drivers: DriverStates;
  records: ClaimRecords;
  registryDirectory: string;
  /** Milliseconds. */
  settings: () => { wipeDelayMs: number; settleTimeMs: number };
  /** No plugin is started after it has aborted. */
  stop: AbortSignal;
  /** `keep` is to be called for a driver again after so many milliseconds. */
  keepAgainIn: (driver: string, ms: number) => void;
  prepare: (driver: string, claim: ClaimReference) => Promise<readonly PreparedDevice[]>;
  unprepare: (driver: string, claim: ClaimReference) => Promise<void>;
  clock: Clock;
  log: Logger;
}

/** Whether the agent is to be a driver's plugin, and until when that holds: monotonic milliseconds; -Infinity: until an event. */
interface Wanted {
  isWanted: boolean;
  until: number;
}

const unwanted: Wanted = { isWanted: false, until: Number.NEGATIVE_INFINITY };

/** Decides for which drivers the agent is the kubelet's plugin, and starts and ends being it. */
export class KubeletPlugins {
  readonly #options: KubeletPluginsOptions;
  readonly #instance = randomBytes(4).toString("hex");
  readonly #startedAt: number;

  constructor(options: KubeletPluginsOptions) {
    this.#options = options;
    this.#startedAt = options.clock.monotonic();
  }

  /** Starts or ends being the kubelet's plugin of a driver, as its state is now. Never called twice at once for one driver. */
  async keep(state: DriverState): Promise<void> {
    const { stop, records, drivers, clock, keepAgainIn } = this.#options;
    const { name, plugin, connection } = state;
    const hasHealth = state.health !== undefined;
    // One look at the clock: of two, what ends between them would neither be noticed nor looked at again.
    const now = clock.monotonic();
    const { isWanted, until } = stop.aborted ? unwanted : this.#wanted(state, now);
    const isOutdated = plugin?.hasHealth !== hasHealth && (!connection || connection.isReconciled);
    if (plugin && (!isWanted || isOutdated)) {
      state.plugin = undefined;
      await plugin.stop();
      // The driver may have registered again meanwhile.
      return await this.keep(state);
    }
    if (isWanted && !plugin) state.plugin = this.#start(name, hasHealth);
    if (until > now) keepAgainIn(name, until - now);
    if (connection || isWanted || state.isLeftAlone) return;
    if (records.of(name).length === 0) drivers.delete(name);
  }

  #wanted({ name, connection, isLeftAlone, disconnectedAt, plugin }: DriverState, now: number): Wanted {
    if (isLeftAlone) return unwanted;
    // One that registers again while its plugin runs keeps it: its prepares wait for what was left from before.
    if (connection) return { ...unwanted, isWanted: connection.isReconciled || plugin !== undefined };
    const { settings, records } = this.#options;
    const { settleTimeMs, wipeDelayMs } = settings();
    const own = records.of(name);
    // Pods would be started with devices that are not set up any more; after a while it is better to end them than to wait.
    const settledAt = this.#startedAt + settleTimeMs;
    if (now < settledAt && own.some((record) => records.isOfOldBoot(record)))
      return { isWanted: false, until: settledAt };
    const isNeeded = own.some(({ state }) => state !== "unprepared");
    const until = disconnectedAt + wipeDelayMs;
    const isWanted = isNeeded || (disconnectedAt > this.#startedAt && now < until);
    return { isWanted, until: isWanted ? until : Number.NEGATIVE_INFINITY };
  }

  #start(driver: string, hasHealth: boolean): KubeletPlugin {
    const { registryDirectory, prepare, unprepare, stop, clock, log } = this.#options;
    return new KubeletPlugin({
      driver,
      registryDirectory,
      instance: this.#instance,
      hasHealth,
      prepare: (claim) => prepare(driver, claim),
      unprepare: (claim) => unprepare(driver, claim),
      health: (_request, { signal }) => this.#watchHealth(driver, AbortSignal.any([signal, stop])),
      clock,
      log,
    });
  }

  async *#watchHealth(driver: string, signal: AbortSignal) {
    const health = this.#options.drivers.get(driver)?.health;
    if (!health) return;
    for await (const { devices, at } of health.watch(signal)) {
      yield {
        devices: devices.map(({ pool, device, healthy, message }) => ({
          device: { poolName: pool, deviceName: device },
          health: healthy ? (1 as const) : (2 as const),
          lastUpdatedTime: BigInt(Math.floor(at / 1_000)),
          message,
        })),
      };
    }
  }
}
