import { codeOf } from "@nodekeeper/core/lib";
import { type Allocation, allocationOf, type ClaimPod } from "./allocation.ts";
import type { ClaimReader, ClaimReference } from "./claim-reader.ts";
import type { ClaimRecord, ClaimRecords } from "./claim-records.ts";
import type { PodAccounts } from "./pod-accounts.ts";

/** Reads allocations of claims from the API server and completes their records. */
export class ClaimAllocations {
  readonly #reader: Pick<ClaimReader, "read">;
  readonly #records: ClaimRecords;
  readonly #accounts: Pick<PodAccounts, "of"> | undefined;

  /** @param accounts default: the service accounts of pods are not known */
  constructor(reader: Pick<ClaimReader, "read">, records: ClaimRecords, accounts?: Pick<PodAccounts, "of">) {
    this.#reader = reader;
    this.#records = records;
    this.#accounts = accounts;
  }

  /** Reads a claim's allocation. Throws as `ClaimReader.read` and `allocationOf` do. */
  async read(driver: string, claim: ClaimReference, signal: AbortSignal): Promise<Allocation> {
    const allocation = allocationOf(await this.#reader.read(claim, signal), driver);
    await this.#records.complete(driver, claim.uid, allocation);
    return allocation;
  }

  /** Returns the pods of a claim with their service accounts, as `PodAccounts.of` does. */
  async withAccounts(
    { namespace }: ClaimReference,
    pods: ClaimPod[],
    signal: AbortSignal,
  ): Promise<ClaimPod[]> {
    return (await this.#accounts?.of(namespace, pods, signal)) ?? pods;
  }

  /**
   * Returns the recorded claim's allocation. Undefined if the claim no longer exists, or has other devices than
   * recorded.
   */
  async current(record: ClaimRecord, signal: AbortSignal): Promise<Allocation | undefined> {
    try {
      const allocation = await this.read(record.driver, record, signal);
      return this.#records.isOf(record, allocation.devices) ? allocation : undefined;
    } catch (error) {
      const code = codeOf(error);
      if (code !== "notFound" && code !== "conflict") throw error;
      return undefined;
    }
  }
}
