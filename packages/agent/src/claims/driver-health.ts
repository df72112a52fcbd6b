import {
  DeviceHealthReportDefinition,
  WatchDeviceHealthRequest,
  WatchDeviceHealthResponse,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha1/preparation.ts";
import { checkEntries, streamMessages } from "@nodekeeper/core/grpc";
import {
  Backoff,
  type Clock,
  childScope,
  type Logger,
  messageOf,
  NodekeeperError,
  retryPolicies,
  WakeableSleep,
} from "@nodekeeper/core/lib";
import type { DeviceTaint } from "../devices/index.ts";
import { PacedReports } from "./paced-reports.ts";

/** The health of one device. */
export interface DeviceHealth {
  pool: string;
  device: string;
  healthy: boolean;
  /** At most 1,024 characters. */
  message: string;
  /** "NoSchedule", "NoExecute" or empty. */
  taintEffect: string;
}

export interface DriverHealthOptions {
  driver: string;
  /** The pool that is called after the node has no name in reports. */
  nodeName: string;
  /** Taints may have changed. */
  onChange: () => void;
  clock: Clock;
  log: Logger;
}

const MOST_BYTES = 16 * 1024 * 1024;
const MOST_DEVICES = 50_000;
const LONGEST_MESSAGE = 1_024;
// The kubelet takes a health for unknown that is older than 30 s.
const RESEND_MS = 10_000;
const DEVICES = 1;

/**
 * The health that a driver reports, over all of its connections, and its way to the kubelet.
 *
 * 1. For the kubelet, the health of devices is unknown while the driver is not heard.
 * 2. Taints last until the driver reports again: a device that was broken before is not taken for repaired because the
 *    driver or its stream is interrupted.
 */
export class DriverHealth {
  readonly #options: DriverHealthOptions;
  readonly #listeners = new Set<() => void>();
  #devices: readonly DeviceHealth[] = [];
  #isEnded = false;
  #taints: ReadonlyMap<string, readonly DeviceTaint[]> = new Map();
  /** Whether the driver has reported any since the agent's start. */
  isKnown = false;
  /** Why nothing is heard; undefined while the driver is heard. */
  problem: string | undefined;

  constructor(options: DriverHealthOptions) {
    this.#options = options;
  }

  get unhealthy(): DeviceHealth[] {
    return this.#devices.filter(({ healthy }) => !healthy);
  }

  /** Of devices that are not healthy, by `<pool>/<device>`; the same object until one changes. */
  get taints(): ReadonlyMap<string, readonly DeviceTaint[]> {
    return this.#taints;
  }

  /**
   * Follows the stream of one connection until the signal aborts; one that fails is started again after 1 s to 1 min.
   * @param endpoint the driver's socket
   */
  async follow(endpoint: string, signal: AbortSignal): Promise<void> {
    const { driver, clock, log } = this.#options;
    const backoff = new Backoff(retryPolicies.healthStream);
    while (!signal.aborted) {
      try {
        await this.#followOnce(endpoint, signal, () => backoff.reset());
        throw new NodekeeperError("unavailable", "the driver ended the stream");
      } catch (error) {
        if (signal.aborted) return;
        this.#report([]);
        this.problem = messageOf(error);
        const retryInMs = Math.round(backoff.next());
        log.warn(
          { errorId: "NK1505", driver, err: error, retryInMs },
          "health of devices is not reported, will be asked again",
        );
        await clock.sleep(retryInMs, signal).catch(() => {});
      }
    }
  }

  /** The connection has ended. */
  disconnected(): void {
    this.problem = undefined;
    this.#report([]);
  }

  /** The driver does not report health any more: every watch ends, and the kubelet starts another one. */
  end(): void {
    this.#isEnded = true;
    this.#report([]);
  }

  /** All health now and after each change, and again every ten seconds, until the signal aborts or `end` is called. */
  async *watch(signal: AbortSignal): AsyncGenerator<{ devices: readonly DeviceHealth[]; at: number }> {
    const { clock } = this.#options;
    const sleep = new WakeableSleep();
    const wake = () => sleep.wake();
    this.#listeners.add(wake);
    try {
      while (!signal.aborted && !this.#isEnded) {
        sleep.clear();
        yield { devices: this.#devices, at: clock.now() };
        await sleep.wait(clock, RESEND_MS, signal);
      }
    } finally {
      this.#listeners.delete(wake);
    }
  }

  async #followOnce(endpoint: string, signal: AbortSignal, onMessage: () => void): Promise<void> {
    const method = `${DeviceHealthReportDefinition.fullName}/WatchDeviceHealth`;
    const request = WatchDeviceHealthRequest.encode({}).finish();
    const limit = { maxReceiveBytes: MOST_BYTES };
    using scope = childScope(signal);
    const reports = new PacedReports({
      take: (bytes) => {
        checkEntries(bytes, { [DEVICES]: {} }, MOST_DEVICES, "devices");
        const { devices } = WatchDeviceHealthResponse.decode(bytes);
        this.problem = undefined;
        onMessage();
        this.#take(devices);
      },
      onError: (error) => scope.abort(error),
      clock: this.#options.clock,
    });
    try {
      for await (const bytes of streamMessages(endpoint, method, request, limit, scope.signal)) {
        scope.signal.throwIfAborted();
        reports.add(bytes);
      }
    } finally {
      reports.end();
      // The last report is for the taints alone: nothing is heard of the driver any more.
      if (signal.aborted) this.#report([]);
    }
    scope.signal.throwIfAborted();
  }

  #take(reported: readonly DeviceHealth[]): void {
    const { driver, nodeName, onChange } = this.#options;
    const devices = reported.map(({ pool, device, healthy, message, taintEffect }) => ({
      pool: pool || nodeName,
      device,
      healthy,
      message: message.slice(0, LONGEST_MESSAGE),
      taintEffect,
    }));
    const taints = taintsOf(driver, devices);
    const isSame = JSON.stringify([...taints]) === JSON.stringify([...this.#taints]);
    if (!isSame) this.#taints = taints;
    this.isKnown = true;
    this.#report(devices);
    if (!isSame) onChange();
  }

  #report(devices: readonly DeviceHealth[]): void {
    this.#devices = devices;
    for (const wake of this.#listeners) wake();
  }
}

function taintsOf(driver: string, devices: readonly DeviceHealth[]): Map<string, DeviceTaint[]> {
  return new Map(
    devices
      .filter(
        ({ healthy, taintEffect }) =>
          !healthy && (taintEffect === "NoSchedule" || taintEffect === "NoExecute"),
      )
      .map(({ pool, device, taintEffect: effect }) => [
        `${pool}/${device}`,
        [{ key: `${driver}/unhealthy`, effect }],
      ]),
  );
}
