import { access, constants } from "node:fs/promises";
import { ClaimNotRecorded } from "@nodekeeper/api/errors";
import {
  childScope,
  errorIdOf,
  type HealthResult,
  messageOf,
  sleepOrAbort,
  WakeableSleep,
} from "@nodekeeper/core/lib";
import { checkFile, ownerOf } from "./cdi-file.ts";
import type { ClaimRecord } from "./claim-records.ts";
import type { ClaimContext } from "./context.ts";

type CdiCheckContext = Pick<ClaimContext, "directory" | "records" | "queue" | "clock" | "log">;

// Between comparisons without an event.
const INTERVAL_MS = 5_000;
// Combines changes of many claims into one comparison. Most changes are the agent's own.
const BURST_MS = 100;

/**
 * Compares the agent's CDI files with the records, at the start, periodically, and after each change of the directory:
 * a reboot empties it, and so may an operator. A file that can't be read or removed does not affect the others, and is
 * retried at the next comparison.
 */
export class CdiCheck {
  readonly #context: CdiCheckContext;
  readonly #sleep = new WakeableSleep();
  /** By file name; "" for the directory itself. */
  #problems: ReadonlyMap<string, string> = new Map();

  constructor(context: CdiCheckContext) {
    this.#context = context;
  }

  /**
   * Removes files of interrupted writes and compares the directory for the first time. If that succeeds, also removes
   * the metadata of claims that are not recorded. Never throws.
   */
  async start(): Promise<void> {
    const { directory, records } = this.#context;
    const problems = new Map<string, string>();
    await this.#trying("", problems, async () => {
      for (const name of await directory.temporaryFiles())
        await this.#trying(name, problems, () => directory.removeNamed(name));
    });
    await this.#compare(problems);
    // Metadata is kept after a problem: a file that can't be read may belong to a claim without a record.
    if (problems.size > 0) return;
    await this.#trying("", problems, () => directory.removeMetadataExcept(records.all()));
  }

  /** Compares after each change of the directory, and every few seconds, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, directory } = this.#context;
    while (!signal.aborted) {
      using watching = childScope(signal);
      // Finds changes from before the watch started.
      directory.watch(() => this.#sleep.wake(), watching.signal);
      await this.#compare(new Map());
      await this.#sleep.waitOrAbort(clock, INTERVAL_MS, signal);
      watching.abort();
      this.#sleep.clear();
      await sleepOrAbort(clock, BURST_MS, signal);
    }
  }

  /** Fails if the directory can't be read or written. */
  health(): HealthResult {
    const problems = [...this.#problems].map(([name, problem]) => (name ? `${name}: ${problem}` : problem));
    return {
      ok: !this.#problems.has(""),
      message: problems.length > 0 ? problems.slice(0, 5).join("; ") : "all files are as recorded",
      errorId: ClaimNotRecorded.id,
    };
  }

  async #compare(problems: Map<string, string>): Promise<void> {
    const { directory, records, queue } = this.#context;
    const differing = new Set<string>();
    await this.#trying("", problems, async () => {
      const names = await directory.names();
      await access(directory.path, constants.W_OK);
      const recorded = new Map<string, ClaimRecord>();
      for (const record of records.all()) {
        const name = directory.nameOf(record.driver, record.uid);
        recorded.set(name, record);
        if (records.hasFile(record) && !names.has(name)) differing.add(record.driver);
      }
      for (const name of names) {
        const record = recorded.get(name);
        if (!directory.isOwn(name) || (record && !this.#mayBeOutdated(record))) continue;
        await this.#trying(name, problems, async () => {
          const driver = await this.#adopt(name, record);
          if (driver !== undefined) differing.add(driver);
        });
      }
    });
    this.#problems = problems;
    for (const driver of differing) queue.add(driver);
  }

  // A claim's file is removed before the claim is recorded as unprepared. If the record is unprepared or of an earlier
  // boot, a file of this boot is therefore newer: an agent wrote it that could not write its state directory.
  #mayBeOutdated(record: ClaimRecord): boolean {
    return record.state === "unprepared" || this.#context.records.isOfOldBoot(record);
  }

  // Records a claim whose record was lost with the state database, or is older than the file. Whether the claim still
  // exists is checked later. Returns its driver; undefined if nothing was recorded.
  async #adopt(name: string, known: ClaimRecord | undefined): Promise<string | undefined> {
    const { directory, records, log } = this.#context;
    const text = await directory.readNamed(name);
    if (text === undefined) return undefined;
    const owner = ownerOf(text);
    if (!owner || directory.nameOf(owner.driver, owner.uid) !== name) {
      await directory.removeNamed(name);
      log.warn({ errorId: ClaimNotRecorded.id, file: name }, "removed a CDI file that belongs to no claim");
      return undefined;
    }
    // The claim may have been prepared or unprepared while the file was read.
    if (records.get(owner.driver, owner.uid) !== known) return undefined;
    if (known && owner.boot !== records.boot) return undefined;
    await records.adopt(owner, text);
    const message = known
      ? "CDI file is newer than its record, recorded the claim again"
      : "CDI file has no record, recorded the claim again";
    log.warn({ errorId: ClaimNotRecorded.id, file: name }, message);
    return owner.driver;
  }

  async #trying(name: string, problems: Map<string, string>, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const problem = messageOf(error);
      problems.set(name, problem);
      // Log each problem once.
      if (this.#problems.get(name) === problem) return;
      const { log, directory } = this.#context;
      if (name === "")
        log.warn(
          { errorId: ClaimNotRecorded.id, directory: directory.path, err: error },
          "failed to compare the CDI directory with the records",
        );
      else
        log.warn(
          { errorId: ClaimNotRecorded.id, file: name, err: error },
          "failed to read, record or remove a CDI file",
        );
    }
  }
}

/**
 * Writes a prepared claim's CDI file, and the metadata that it mounts, if any of them is missing or changed. The paths
 * in it are checked again, because they may have changed since it was written. If one is no longer allowed, removes the
 * file and throws the reason.
 */
export async function restoreFile(context: ClaimContext, record: ClaimRecord): Promise<void> {
  const { driver, uid, namespace, name, cdi } = record;
  if (cdi === "") return;
  const { directory, records, host, log } = context;
  const found = await directory.read(driver, uid);
  const { driverUid, metadata = {} } = ownerOf(cdi) ?? {};
  const own = Object.keys(metadata).map((request) => directory.metadataOf(driver, uid, request));
  try {
    await checkFile(cdi, host.forDriverOf(driverUid), own);
  } catch (error) {
    records.withhold(record, true);
    await directory.remove(driver, uid);
    const fields = { errorId: errorIdOf(error), driver, claim: { namespace, name }, err: error };
    if (found !== undefined) log.warn(fields, "CDI file removed: its edits are no longer allowed");
    throw error;
  }
  records.withhold(record, false);
  if (found === cdi && directory.hasMetadata(cdi)) return;
  directory.write(driver, uid, cdi);
  log.warn(
    { errorId: ClaimNotRecorded.id, driver, claim: { namespace, name } },
    "CDI file, or metadata that it mounts, was removed or changed: written again",
  );
}
