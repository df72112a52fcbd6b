import { randomBytes } from "node:crypto";
import { DriverNotRegistered } from "@nodekeeper/api/errors";
import { counted } from "@nodekeeper/api/wording";
import type { HealthResult, InotifyWatches } from "@nodekeeper/core/lib";
import type { DriverContext } from "./context.ts";
import type { DriverState } from "./driver-state.ts";
import { KubeletPlugin, type PluginCalls } from "./kubelet-plugin.ts";

type Context = Pick<
  DriverContext,
  "records" | "drivers" | "settings" | "stop" | "queue" | "clock" | "log"
> & {
  calls: PluginCalls;
  watches?: InotifyWatches | undefined;
};

/**
 * Whether the agent should serve a driver's plugin, and when to check again (`until`), in monotonic milliseconds.
 * -Infinity: only after the next event.
 */
interface Wanted {
  isWanted: boolean;
  until: number;
}

const unwanted: Wanted = { isWanted: false, until: Number.NEGATIVE_INFINITY };

/** Starts and stops the kubelet's DRA plugins for drivers. */
export class KubeletPlugins {
  readonly #context: Context;
  readonly #instance = randomBytes(4).toString("hex");
  readonly #startedAt: number;

  constructor(context: Context) {
    this.#context = context;
    this.#startedAt = context.clock.monotonic();
  }

  /** Starts or stops a driver's plugin according to the driver's state. Do not call it concurrently for one driver. */
  async keep(state: DriverState): Promise<void> {
    const { records, drivers, clock, queue, stop } = this.#context;
    const { name, plugin, connection } = state;
    const hasHealth = state.health !== undefined;
    // The clock is read once: a deadline that passes between two readings would be neither noticed nor scheduled.
    const now = clock.monotonic();
    const { isWanted, until } = stop.aborted ? unwanted : this.#wanted(state, now);
    // Whether a driver reports health is unknown until it connects.
    const isKnown = connection ? connection.isReconciled : drivers.wasConnected(state);
    const isOutdated = plugin?.hasHealth !== hasHealth && isKnown;
    if (plugin && (!isWanted || isOutdated)) {
      drivers.serves(name, undefined);
      await plugin.stop();
      // The driver may have registered again meanwhile.
      return await this.keep(state);
    }
    if (isWanted && !plugin) drivers.serves(name, this.#start(name, hasHealth));
    if (until > now) queue.addAfter(name, until - now);
    if (connection || isWanted || state.isLeftAlone) return;
    if (records.of(name).length === 0) drivers.delete(name);
  }

  #wanted({ name, connection, isLeftAlone, disconnectedAt, plugin }: DriverState, now: number): Wanted {
    if (isLeftAlone) return unwanted;
    // A driver that registers again while its plugin runs keeps the plugin: prepares wait until its claims are
    // reconciled.
    if (connection?.isReconciled || (connection && plugin)) return { ...unwanted, isWanted: true };
    const { records, settings } = this.#context;
    const { settleTime, wipeDelay } = settings();
    const own = records.of(name);
    // With the plugin, pods could start with devices whose preparation was lost by a reboot or by the driver. After the
    // startup grace period, failing them is better than waiting.
    const settledAt = this.#startedAt + settleTime;
    if (now < settledAt && own.some((record) => records.isLost(record)))
      return { isWanted: false, until: settledAt };
    const isNeeded = own.some(({ state }) => state !== "unprepared");
    // Whether it ever answers is not known.
    if (connection) return { ...unwanted, isWanted: isNeeded };
    const until = disconnectedAt + wipeDelay;
    // A driver whose plugin an earlier agent served is expected to connect, like one that was connected.
    const isExpected = disconnectedAt > this.#startedAt || plugin !== undefined;
    const isWanted = isNeeded || (isExpected && now < until);
    return { isWanted, until: isWanted ? until : Number.NEGATIVE_INFINITY };
  }

  #start(driver: string, hasHealth: boolean): KubeletPlugin {
    const { settings, calls, clock, log, watches } = this.#context;
    const { registryDirectory } = settings().kubeletPlugin;
    const instance = this.#instance;
    return new KubeletPlugin({ driver, registryDirectory, instance, hasHealth, calls, clock, log, watches });
  }
}

const SLOW_MS = 60_000;

/**
 * Reports drivers for which the kubelet has not registered the agent for a minute. Fails only if all drivers are
 * affected.
 * @param now wall milliseconds
 */
export function registrationHealth(
  drivers: readonly DriverState[],
  registryDirectory: string,
  now: number,
): HealthResult {
  const plugins = drivers.flatMap(({ name, plugin }) => (plugin ? [{ name, plugin }] : []));
  const failing = plugins.filter(
    ({ plugin: { registration, startedAt } }) =>
      registration.state !== "registered" && now - startedAt >= SLOW_MS,
  );
  const names = failing.map(({ name, plugin: { registration } }) =>
    registration.state === "refused"
      ? `${name}: ${registration.reason}`
      : `${name}: the kubelet has not found ${registryDirectory}`,
  );
  return {
    // A single failing driver does not fail the check. If the kubelet registers none, the cause is probably the agent
    // or its mounts.
    ok: failing.length === 0 || failing.length < plugins.length,
    message:
      names.length > 0
        ? `not registered with the kubelet: ${names.join("; ")}`
        : counted(plugins.length, "driver"),
    errorId: DriverNotRegistered.id,
  };
}
