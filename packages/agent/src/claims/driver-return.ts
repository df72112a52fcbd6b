import { abortable, codeOf, probeSocket, withDeadline } from "@nodekeeper/core/lib";
import type { ClaimReference } from "./claim-reader.ts";
import type { DriverContext, KubeletCall } from "./context.ts";
import type { Connection, DriverState } from "./driver-state.ts";

type Context = Pick<DriverContext, "drivers" | "settings" | "clock" | "log">;

// The kubelet waits 45 s for a response, and retries a failed prepare only 60 to 90 s later. The remaining time is left
// for the driver.
const LONGEST_WAIT_MS = 20_000;
const POLL_MS = 50;

/**
 * Retries work that failed because its driver was disconnected, such as during an update, once the driver has
 * reconnected.
 *
 * 1. It waits only for a connection. An error of a connected driver is thrown at once.
 * 2. It waits until the driver has been disconnected for `devices.wipeDelay`, or until `devices.settleTime` after the
 *    agent's start, and at most 20 s per call.
 */
export class DriverReturn {
  readonly #context: Context;

  constructor(context: Context) {
    this.#context = context;
  }

  /** Runs `work` once the driver's claims are reconciled. Throws as `work` does, and the signal's reason. */
  async run<T>(
    driver: string,
    { namespace, name }: ClaimReference,
    work: () => Promise<T>,
    { signal, waitUntil }: KubeletCall,
  ): Promise<T> {
    const { drivers, clock, log } = this.#context;
    const latest = Math.min(clock.monotonic() + LONGEST_WAIT_MS, waitUntil);
    let isLogged = false;
    for (;;) {
      const connection = drivers.get(driver)?.connection;
      if (connection) await this.#untilReconciled(connection, latest, signal);
      try {
        return await work();
      } catch (error) {
        const isLost = codeOf(error) === "unavailable" && (await this.#isLost(driver, connection));
        if (!isLost || !this.#isExpected(driver, latest)) throw error;
        if (!isLogged)
          log.info({ driver, claim: { namespace, name }, err: error }, "claim waits for its driver");
        isLogged = true;
        if (!(await this.#hasReturned(driver, connection, latest, signal))) throw error;
      }
    }
  }

  // The wait is bounded, because a plugin that is being stopped waits for its calls. If its driver registers again
  // meanwhile, the driver's claims are reconciled only after the plugin has stopped.
  async #untilReconciled(
    { reconciled, isReconciled }: Connection,
    latest: number,
    signal: AbortSignal,
  ): Promise<void> {
    if (isReconciled) return;
    const { clock } = this.#context;
    const deadline = { ms: Math.max(latest - clock.monotonic(), 0), name: "reconciling the driver's claims" };
    try {
      await withDeadline(clock, deadline, signal, (scope) => abortable(reconciled.promise, scope));
    } catch (error) {
      if (signal.aborted || codeOf(error) !== "deadline") throw error;
    }
  }

  // A call may fail before the disconnection is detected.
  async #isLost(driver: string, connection: Connection | undefined): Promise<boolean> {
    if (!connection || this.#context.drivers.get(driver)?.connection !== connection) return true;
    const found = await probeSocket(this.#context.clock, connection.endpoint);
    return found === "refused" || found === "missing";
  }

  async #hasReturned(
    driver: string,
    before: Connection | undefined,
    latest: number,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { drivers, clock } = this.#context;
    while (this.#isExpected(driver, latest)) {
      const connection = drivers.get(driver)?.connection;
      if (connection && connection !== before) return true;
      await clock.sleep(POLL_MS, signal);
    }
    return false;
  }

  #isExpected(driver: string, latest: number): boolean {
    const { drivers, settings, clock } = this.#context;
    const state: DriverState | undefined = drivers.get(driver);
    const now = clock.monotonic();
    if (!state || state.isLeftAlone || now >= latest) return false;
    if (state.connection) return true;
    const { wipeDelay, settleTime } = settings();
    const graceMs = drivers.wasConnected(state) ? wipeDelay : settleTime;
    return now < state.disconnectedAt + graceMs;
  }
}
