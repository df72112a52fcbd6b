import { type Clock, type Logger, messageOf } from "@nodekeeper/core/lib";
import { type ClaimRecord, type ClaimRecords, isEnding } from "./claim-records.ts";
import type { Preparation } from "./preparation.ts";

export interface EndedClaimsOptions {
  records: ClaimRecords;
  preparation: Pick<Preparation, "hasEnded" | "unprepareEnded">;
  /** The devices of claims that running pods use, as `<driver>/<pool>/<device>`. Rejects where the kubelet does not answer. */
  devicesInUse: (signal: AbortSignal) => Promise<ReadonlySet<string>>;
  clock: Clock;
  log: Logger;
}

const FIRST_MS = 60_000;
const PERIOD_MS = 600_000;

/**
 * Finds claims that the kubelet never unprepares, for it has lost its own record of them: no running pod uses their
 * devices, and twice within a minute the API server does not have them, or not with these devices. They are unprepared.
 * Claims in use are not read from the API server. Where no device is in use, none is unprepared: kubelets before
 * Kubernetes 1.34 do not report the claims of running pods by default. Such claims are unprepared when their devices are
 * allocated again.
 */
export class EndedClaims {
  readonly #options: EndedClaimsOptions;
  // Found to have ended once; by driver and UID.
  #suspects: ReadonlySet<string> = new Set();

  constructor(options: EndedClaimsOptions) {
    this.#options = options;
  }

  /** Looks a minute after the start, every ten minutes, and a minute after a claim was found. Ends with the signal. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    await clock.sleep(FIRST_MS, signal).catch(() => {});
    while (!signal.aborted) {
      try {
        await this.#look(signal);
      } catch (error) {
        if (!signal.aborted)
          log.warn(
            { err: error, errorId: "NK1409" },
            "claims in use are not known: ended ones are not looked for",
          );
      }
      await clock.sleep(this.#suspects.size > 0 ? FIRST_MS : PERIOD_MS, signal).catch(() => {});
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { records, devicesInUse } = this.#options;
    const before = this.#suspects;
    const candidates = records
      .drivers()
      .flatMap((driver) => records.of(driver))
      .filter((record) => !isEnding(record));
    const inUse = candidates.length > 0 ? await devicesInUse(signal) : new Set<string>();
    const suspects = new Set<string>();
    // Perhaps the kubelet reports no claims at all.
    if (inUse.size === 0) {
      this.#suspects = suspects;
      return;
    }
    for (const record of candidates) {
      if (isUsed(record, inUse)) continue;
      const key = `${record.driver}/${record.uid}`;
      if (await this.#hasEnded(record, before.has(key), signal)) suspects.add(key);
    }
    this.#suspects = suspects;
  }

  // Answers whether to look again soon.
  async #hasEnded(record: ClaimRecord, isSuspect: boolean, signal: AbortSignal): Promise<boolean> {
    const { preparation, log } = this.#options;
    const { driver, uid, namespace, name } = record;
    const fields = { errorId: "NK1512", driver, claim: { namespace, name, uid } };
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
