import { codeOf } from "@nodekeeper/core/lib";
import { type Allocation, allocationOf } from "./allocation.ts";
import type { ClaimReader, ClaimReference } from "./claim-reader.ts";
import type { ClaimRecord, ClaimRecords } from "./claim-records.ts";

/** Reads allocations of claims from the API server and completes their records. */
export class ClaimAllocations {
  readonly #reader: Pick<ClaimReader, "read">;
  readonly #records: ClaimRecords;

  constructor(reader: Pick<ClaimReader, "read">, records: ClaimRecords) {
    this.#reader = reader;
    this.#records = records;
  }

  /** Reads a claim's allocation. Throws as `ClaimReader.read` and `allocationOf` do. */
  async read(driver: string, claim: ClaimReference, signal: AbortSignal): Promise<Allocation> {
    const allocation = allocationOf(await this.#reader.read(claim, signal), driver);
    await this.#records.complete(driver, claim.uid, allocation);
    return allocation;
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
