import { ClaimNotRecorded } from "@nodekeeper/api/errors";
import {
  childScope,
  codeOf,
  errorIdOf,
  messageOf,
  NodekeeperError,
  type ScopedSignal,
} from "@nodekeeper/core/lib";
import type { ClaimReference } from "./claim-reader.ts";
import type { DriverContext, KubeletCall } from "./context.ts";
import type { DriverReturn } from "./driver-return.ts";
import type { PluginCalls } from "./kubelet-plugin.ts";
import type { ClaimMetrics } from "./metrics.ts";
import type { Preparation } from "./preparation.ts";
import type { PreparedDevice } from "./recorded-devices.ts";

/** `DriverContext` and the parts that handle a call. */
interface Context extends Pick<DriverContext, "drivers" | "stop" | "clock" | "log"> {
  preparation: Pick<Preparation, "prepare" | "unprepare">;
  driverReturn: Pick<DriverReturn, "run">;
  metrics: ClaimMetrics;
}

// The kubelet's timeout for a call is 45 s (pkg/kubelet/cm/dra/plugin). After it, the kubelet retries in 60 to 90 s,
// without a reason.
const LONGEST_WAIT_MS = 40_000;
// Shorter than the deadline for stopping the agent's parts.
const DRAIN_MS = 2_500;
const POLL_MS = 20;

/**
 * Handles the kubelet's calls, with metrics and logs.
 *
 * 1. A prepare waits at most 40 s for its driver and for containers of pods that had the devices. Then it fails with
 *    the reason, before the kubelet's timeout.
 * 2. A prepare in progress is aborted when the claim is unprepared.
 */
export class KubeletCalls implements PluginCalls {
  readonly #context: Context;
  // Prepares in progress, by driver and UID of the claim.
  readonly #preparing = new Map<string, Set<ScopedSignal>>();
  #underWay = 0;

  constructor(context: Context) {
    this.#context = context;
  }

  async prepare(
    driver: string,
    claim: ClaimReference,
    call: AbortSignal,
  ): Promise<readonly PreparedDevice[]> {
    const { driverReturn, preparation, stop } = this.#context;
    const key = `${driver}/${claim.uid}`;
    using scope = childScope(stop, call);
    const scopes = this.#preparing.get(key) ?? new Set();
    this.#preparing.set(key, scopes.add(scope));
    try {
      return await this.#run(driver, "prepare", async () => {
        const limits = this.#limitsOf(scope.signal);
        const work = () => preparation.prepare(driver, claim, stop, limits);
        return await driverReturn.run(driver, claim, work, limits);
      });
    } finally {
      scopes.delete(scope);
      if (scopes.size === 0) this.#preparing.delete(key);
    }
  }

  async unprepare(driver: string, claim: ClaimReference, call: AbortSignal): Promise<void> {
    const reason = "the kubelet has called to unprepare the claim after it called to prepare it";
    for (const scope of this.#preparing.get(`${driver}/${claim.uid}`) ?? [])
      scope.abort(new NodekeeperError("stopped", reason));
    const { preparation, stop } = this.#context;
    await this.#run(driver, "unprepare", () =>
      preparation.unprepare(driver, claim, stop, this.#limitsOf(call)),
    );
  }

  /**
   * Yields the health of a driver's devices in the kubelet's format, until the signal aborts or the driver no longer
   * reports health.
   */
  async *health(driver: string, signal: AbortSignal) {
    const health = this.#context.drivers.get(driver)?.health;
    if (!health) return;
    for await (const { devices, at } of health.watch(AbortSignal.any([signal, this.#context.stop]))) {
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

  /** Waits until no call is in progress, at most 2.5 s: the kubelet retries a failed call only after 60 to 90 s. */
  async ended(): Promise<void> {
    const { clock } = this.#context;
    const latest = clock.monotonic() + DRAIN_MS;
    while (this.#underWay > 0 && clock.monotonic() < latest) await clock.sleep(POLL_MS);
  }

  #limitsOf(signal: AbortSignal): KubeletCall {
    return { signal, waitUntil: this.#context.clock.monotonic() + LONGEST_WAIT_MS };
  }

  // Throws as `work` does, with an error ID.
  async #run<T>(driver: string, operation: string, work: () => Promise<T>): Promise<T> {
    const { metrics, clock, log } = this.#context;
    const startedAt = clock.monotonic();
    let result = "ok";
    this.#underWay++;
    try {
      return await work();
    } catch (error) {
      result = codeOf(error);
      const failure = errorIdOf(error)
        ? error
        : new ClaimNotRecorded({ problem: messageOf(error) }, { cause: error, code: codeOf(error) });
      log.warn(
        { driver, operation, err: failure },
        "a call of the kubelet for a claim failed; the kubelet retries it",
      );
      throw failure;
    } finally {
      this.#underWay--;
      metrics.operations.inc({ driver, operation, result });
      metrics.seconds.observe({ driver, operation }, (clock.monotonic() - startedAt) / 1_000);
    }
  }
}
