import { DeviceHealthNotReported } from "@nodekeeper/api/errors";
import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { WatchDeviceHealthResponse } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { type Clock, type Logger, quote, WakeableSleep } from "@nodekeeper/core/lib";
import type { DeviceTaint, DriverProblem } from "../devices/index.ts";
import { ReportStream } from "./report-stream.ts";

/** The health of one device. */
export type DeviceHealth = ApiAnswers["claims"][number]["unhealthy"][number];

export interface DriverHealthOptions {
  driver: string;
  /** Name of the pool whose name is empty in reports. */
  nodeName: string;
  /** Called with the taints after each change. */
  onChange: (taints: DriverHealth["taints"]) => void;
  /** Called with what is refused of each report. */
  onRefused: (problems: readonly DriverProblem[]) => void;
  clock: Clock;
  log: Logger;
}

const MOST_DEVICES = 50_000;
const MOST_REFUSED = 1_000;
const LONGEST_MESSAGE = 1_024;
// The kubelet considers health older than 30 s unknown.
const RESEND_MS = 10_000;
// Field number 1: devices.
const bounds = { repeated: { 1: {} }, most: MOST_DEVICES, what: "devices" };

/**
 * The health that a driver reports, across its connections, and its watches by the kubelet.
 *
 * 1. While the driver does not report, the kubelet receives no health.
 * 2. Taints stay until the driver reports again: an interruption of the driver or its stream does not make a device
 *    healthy.
 */
export class DriverHealth {
  readonly #options: DriverHealthOptions;
  readonly #stream: ReportStream<WatchDeviceHealthResponse>;
  readonly #listeners = new Set<() => void>();
  #devices: readonly DeviceHealth[] = [];
  #isEnded = false;
  #taints: ReadonlyMap<string, readonly DeviceTaint[]> = new Map();
  /** Whether the driver has reported since the agent's start. */
  isKnown = false;

  constructor(options: DriverHealthOptions) {
    this.#options = options;
    this.#stream = new ReportStream({
      ...options,
      method: "WatchDeviceHealth",
      about: "the health of devices",
      errorId: DeviceHealthNotReported.id,
      message: WatchDeviceHealthResponse,
      bounds,
      onReport: ({ devices }) => this.#take(devices),
      onUnreadable: (problem) => {
        const message = `WatchDeviceHealth: ${problem}`;
        options.onRefused([{ errorId: DeviceHealthNotReported.id, message }]);
      },
      // The kubelet receives no health without a connection.
      onEnd: () => this.#report([]),
    });
  }

  get unhealthy(): DeviceHealth[] {
    return this.#devices.filter(({ healthy }) => !healthy);
  }

  /** The taints of unhealthy devices, by `<pool>/<device>`. The same object until one changes. */
  get taints(): ReadonlyMap<string, readonly DeviceTaint[]> {
    return this.#taints;
  }

  /** Why the stream failed; undefined while it works. */
  get problem(): string | undefined {
    return this.#stream.problem;
  }

  /** See `ReportStream.follow`. */
  async follow(endpoint: string, service: string, signal: AbortSignal): Promise<void> {
    await this.#stream.follow(endpoint, service, signal);
  }

  /** Ends the health of a closed connection. */
  disconnected(): void {
    this.#stream.problem = undefined;
    this.#report([]);
  }

  /** Ends all watches, because the driver no longer reports health. The kubelet starts new ones. */
  end(): void {
    this.#isEnded = true;
    this.#report([]);
  }

  /**
   * Yields the health of all devices: now, after each change, and every 10 s, until the signal aborts or `end` is
   * called.
   */
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

  #take(reported: readonly DeviceHealth[]): void {
    const { driver, nodeName, onChange, onRefused } = this.#options;
    onRefused(refusedHealth(reported, nodeName));
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
    if (!isSame) onChange(taints);
  }

  #report(devices: readonly DeviceHealth[]): void {
    this.#devices = devices;
    for (const wake of this.#listeners) wake();
  }
}

/** Returns what is refused of a report; at most 1,000 problems. */
function refusedHealth(reported: readonly DeviceHealth[], nodeName: string): DriverProblem[] {
  const refused: DriverProblem[] = [];
  const seen = new Set<string>();
  for (const { pool: reportedPool, device, taintEffect } of reported) {
    const pool = reportedPool || nodeName;
    const key = `${pool}/${device}`;
    const problem = seen.has(key)
      ? "device: it is reported twice; the last one counts"
      : isEffect(taintEffect) || taintEffect === ""
        ? undefined
        : `taint_effect: ${quote(taintEffect)} is not "NoSchedule" or "NoExecute"; no taint is added`;
    seen.add(key);
    if (problem === undefined) continue;
    const message = `health refused: device ${quote(key)}: ${problem}`;
    refused.push({ errorId: DeviceHealthNotReported.id, message, pool, device });
    if (refused.length === MOST_REFUSED) break;
  }
  return refused;
}

function isEffect(effect: string): effect is "NoSchedule" | "NoExecute" {
  return effect === "NoSchedule" || effect === "NoExecute";
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
