import { access, constants } from "node:fs/promises";
import {
  type Clock,
  childScope,
  type HealthResult,
  type Logger,
  messageOf,
  WakeableSleep,
} from "@nodekeeper/core/lib";
import { ownerOf } from "./cdi-file.ts";
import type { CdiFolder } from "./cdi-folder.ts";
import type { ClaimRecords } from "./claim-records.ts";

export interface FolderCheckOptions {
  folder: CdiFolder;
  records: ClaimRecords;
  /** A driver's files and records differ: a file was deleted, or recorded again. */
  onDifference: (driver: string) => void;
  /** How often the folder is compared with the records without an event, milliseconds. Default 5 s. */
  intervalMs?: number | undefined;
  clock: Clock;
  log: Logger;
}

const INTERVAL_MS = 5_000;
// One look for the changes of many claims at once; most of these changes are the agent's own.
const BURST_MS = 100;

/**
 * Compares the agent's CDI files with the records, at the start and whenever the folder changes: a reboot empties it, and
 * so may a person. A file that can't be read or removed is a problem of its own, and tried again at the next look.
 */
export class FolderCheck {
  readonly #options: FolderCheckOptions;
  readonly #sleep = new WakeableSleep();
  /** By file; the folder itself is "". */
  #problems: ReadonlyMap<string, string> = new Map();

  constructor(options: FolderCheckOptions) {
    this.#options = options;
  }

  /** Removes what interrupted writes left, and compares for the first time. Never throws. */
  async start(): Promise<void> {
    const { folder } = this.#options;
    const problems = new Map<string, string>();
    await this.#trying("", problems, async () => {
      for (const name of await folder.temporaryFiles())
        await this.#trying(name, problems, () => folder.removeNamed(name));
    });
    await this.#compare(problems);
  }

  /** Compares after each change of the folder, and every few seconds, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, folder, intervalMs = INTERVAL_MS } = this.#options;
    while (!signal.aborted) {
      using watching = childScope(signal);
      // What changes while it is not watched is found by the comparison after the watch has started.
      folder.watch(() => this.#sleep.wake(), watching.signal);
      await this.#compare(new Map());
      await this.#sleep.wait(clock, intervalMs, signal).catch(() => {});
      watching.abort();
      this.#sleep.clear();
      await clock.sleep(BURST_MS, signal).catch(() => {});
    }
  }

  /** Fails where the folder can't be read or written. */
  health(): HealthResult {
    const problems = [...this.#problems].map(([name, problem]) => (name ? `${name}: ${problem}` : problem));
    return {
      ok: !this.#problems.has(""),
      message: problems.length > 0 ? problems.slice(0, 5).join("; ") : "all files are as recorded",
      errorId: "NK1510",
    };
  }

  async #compare(problems: Map<string, string>): Promise<void> {
    const { folder, records, onDifference } = this.#options;
    const differing = new Set<string>();
    await this.#trying("", problems, async () => {
      const names = await folder.names();
      await access(folder.path, constants.W_OK);
      const recorded = new Set<string>();
      for (const record of records.drivers().flatMap((driver) => records.of(driver))) {
        const name = folder.nameOf(record.driver, record.uid);
        recorded.add(name);
        const isExpected = record.state === "prepared" && record.cdi !== "" && !records.isOfOldBoot(record);
        if (isExpected && !names.has(name)) differing.add(record.driver);
      }
      for (const name of names) {
        if (!folder.isOwn(name) || recorded.has(name)) continue;
        await this.#trying(name, problems, async () => {
          const driver = await this.#adopt(name);
          if (driver !== undefined) differing.add(driver);
        });
      }
    });
    this.#problems = problems;
    for (const driver of differing) onDifference(driver);
  }

  // A file whose record was lost with the state database. Whether its claim still exists is found out later.
  async #adopt(name: string): Promise<string | undefined> {
    const { folder, records, log } = this.#options;
    const text = await folder.readNamed(name);
    if (text === undefined) return undefined;
    const owner = ownerOf(text);
    if (!owner || folder.nameOf(owner.driver, owner.uid) !== name) {
      await folder.removeNamed(name);
      log.warn({ errorId: "NK1510", file: name }, "CDI file of no claim removed");
      return undefined;
    }
    // It may have been prepared while the file was read.
    if (records.get(owner.driver, owner.uid)) return undefined;
    records.adopt(owner, text);
    log.warn({ errorId: "NK1510", file: name }, "CDI file without a record: recorded again");
    return owner.driver;
  }

  async #trying(name: string, problems: Map<string, string>, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const problem = messageOf(error);
      problems.set(name, problem);
      // Once, not every few seconds.
      if (this.#problems.get(name) === problem) return;
      const { log, folder } = this.#options;
      if (name === "")
        log.warn(
          { errorId: "NK1510", folder: folder.path, err: error },
          "CDI folder can't be compared with the records",
        );
      else
        log.warn(
          { errorId: "NK1510", file: name, err: error },
          "CDI file can't be read, recorded or removed",
        );
    }
  }
}
