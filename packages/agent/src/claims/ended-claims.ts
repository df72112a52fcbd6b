import { EndedClaimPrepared, PodResourcesUnreadable } from "@nodekeeper/api/errors";
import { messageOf, sleepOrAbort } from "@nodekeeper/core/lib";
import { type ClaimRecord, isEnding } from "./claim-records.ts";
import type { ClaimContext } from "./context.ts";
import type { Preparation } from "./preparation.ts";

interface Context extends Pick<ClaimContext, "records" | "clock" | "log"> {
  preparation: Pick<Preparation, "hasEnded" | "unprepareEnded">;
  /**
   * Returns the devices of claims that running pods use, as `<driver>/<pool>/<device>`. Rejects if the kubelet does not
   * respond.
   */
  devicesInUse: (signal: AbortSignal) => Promise<ReadonlySet<string>>;
}

const FIRST_MS = 60_000;
const PERIOD_MS = 600_000;

/**
 * Unprepares claims that the kubelet never unprepares because it lost its record of them.
 *
 * 1. A claim is unprepared if two checks a minute apart find that no running pod uses its devices, and that the API
 *    server no longer has the claim with these devices. Claims in use are not read from the API server.
 * 2. If the kubelet reports no device in use, no claim is unprepared: kubelets before Kubernetes 1.34 do not report the
 *    claims of running pods by default. Ended claims are then unprepared when their devices are allocated again.
 */
export class EndedClaims {
  readonly #context: Context;
  // Claims found ended in the last check, by driver and UID.
  #suspects: ReadonlySet<string> = new Set();

  constructor(context: Context) {
    this.#context = context;
  }

  /**
   * Checks a minute after the start, then every ten minutes, or a minute after an ended claim was found. Resolves when
   * the signal aborts.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#context;
    await sleepOrAbort(clock, FIRST_MS, signal);
    while (!signal.aborted) {
      try {
        await this.#look(signal);
      } catch (error) {
        if (!signal.aborted)
          log.warn(
            { err: error, errorId: PodResourcesUnreadable.id },
            "failed to list the claims in use by pods, not checking for ended claims",
          );
      }
      await sleepOrAbort(clock, this.#suspects.size > 0 ? FIRST_MS : PERIOD_MS, signal);
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { records, devicesInUse } = this.#context;
    const before = this.#suspects;
    const candidates = records.all().filter((record) => !isEnding(record));
    const inUse = candidates.length > 0 ? await devicesInUse(signal) : new Set<string>();
    const suspects = new Set<string>();
    // The kubelet may not report claims.
    if (inUse.size === 0) {
      this.#suspects = suspects;
      return;
    }
    const look = async (ofDriver: readonly ClaimRecord[]) => {
      for (const record of ofDriver) {
        if (isUsed(record, inUse)) continue;
        const key = `${record.driver}/${record.uid}`;
        if (await this.#hasEnded(record, before.has(key), signal)) suspects.add(key);
      }
    };
    // A driver that does not answer does not delay the claims of others.
    await Promise.all([...Map.groupBy(candidates, ({ driver }) => driver).values()].map(look));
    this.#suspects = suspects;
  }

  // Returns whether to check the claim again soon.
  async #hasEnded(record: ClaimRecord, isSuspect: boolean, signal: AbortSignal): Promise<boolean> {
    const { preparation, log } = this.#context;
    const { driver, uid, namespace, name } = record;
    const fields = { errorId: EndedClaimPrepared.id, driver, claim: { namespace, name, uid } };
    try {
      if (!isSuspect) return await preparation.hasEnded(driver, uid, signal);
      if (await preparation.unprepareEnded(driver, uid, signal))
        log.warn(fields, "claim has ended and the kubelet did not unprepare it: unprepared");
      return false;
    } catch (error) {
      signal.throwIfAborted();
      log.warn({ ...fields, err: error }, `claim may have ended: ${messageOf(error)}`);
      return isSuspect;
    }
  }
}

function isUsed({ driver, devices }: ClaimRecord, inUse: ReadonlySet<string>): boolean {
  return devices.some(({ pool, device }) => inUse.has(`${driver}/${pool}/${device}`));
}
