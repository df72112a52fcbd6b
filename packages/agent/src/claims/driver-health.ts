import {
  DeviceHealthReportDefinition,
  WatchDeviceHealthRequest,
  WatchDeviceHealthResponse,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha1/preparation.ts";
import { streamMessages } from "@nodekeeper/core/grpc";
import {
  Backoff,
  type Clock,
  type Logger,
  messageOf,
  NodekeeperError,
  retryPolicies,
  WakeableSleep,
} from "@nodekeeper/core/lib";
import type { DeviceTaint } from "../devices/index.ts";

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
  /** Of the driver's socket. */
  endpoint: string;
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

/** Follows the health that a connected driver reports, and hands it to the kubelet. */
export class DriverHealth {
  readonly #options: DriverHealthOptions;
  readonly #listeners = new Set<() => void>();
  #devices: readonly DeviceHealth[] = [];
  #taints: ReadonlyMap<string, readonly DeviceTaint[]> = new Map();
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

  /** Follows the driver's stream until the signal aborts; one that fails is started again after 1 s to 1 min. */
  async run(signal: AbortSignal): Promise<void> {
    const { driver, clock, log } = this.#options;
    const backoff = new Backoff(retryPolicies.healthStream);
    while (!signal.aborted) {
      try {
        await this.#follow(signal, () => backoff.reset());
        throw new NodekeeperError("unavailable", "the driver ended the stream");
      } catch (error) {
        if (signal.aborted) break;
        // What was reported last is not known to hold.
        this.#take([]);
        this.problem = messageOf(error);
        const retryInMs = Math.round(backoff.next());
        log.warn({ driver, err: error, retryInMs }, "health of devices is not reported, will be asked again");
        await clock.sleep(retryInMs, signal).catch(() => {});
      }
    }
    this.#take([]);
  }

  /** All health now and after each change, and again every ten seconds while there is any. */
  async *watch(signal: AbortSignal): AsyncGenerator<{ devices: readonly DeviceHealth[]; at: number }> {
    const { clock } = this.#options;
    const sleep = new WakeableSleep();
    const wake = () => sleep.wake();
    this.#listeners.add(wake);
    try {
      while (!signal.aborted) {
        sleep.clear();
        yield { devices: this.#devices, at: clock.now() };
        await sleep.wait(clock, RESEND_MS, signal);
      }
    } finally {
      this.#listeners.delete(wake);
    }
  }

  async #follow(signal: AbortSignal, onMessage: () => void): Promise<void> {
    const { endpoint, nodeName } = this.#options;
    const method = `${DeviceHealthReportDefinition.fullName}/WatchDeviceHealth`;
    const request = WatchDeviceHealthRequest.encode({}).finish();
    for await (const bytes of streamMessages(
      endpoint,
      method,
      request,
      { maxReceiveBytes: MOST_BYTES },
      signal,
    )) {
      const { devices } = WatchDeviceHealthResponse.decode(bytes);
      if (devices.length > MOST_DEVICES)
        throw new NodekeeperError(
          "exhausted",
          `the driver reports the health of more than ${MOST_DEVICES} devices`,
        );
      this.problem = undefined;
      onMessage();
      this.#take(
        devices.map(({ pool, message, ...rest }) => ({
          ...rest,
          pool: pool || nodeName,
          message: message.slice(0, LONGEST_MESSAGE),
        })),
      );
    }
  }

  #take(devices: readonly DeviceHealth[]): void {
    this.#devices = devices;
    const taints = taintsOf(this.#options.driver, devices);
    const isSame = JSON.stringify([...taints]) === JSON.stringify([...this.#taints]);
    if (!isSame) this.#taints = taints;
    for (const wake of this.#listeners) wake();
    if (!isSame) this.#options.onChange();
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
