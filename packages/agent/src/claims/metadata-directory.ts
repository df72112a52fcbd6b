import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { readdir, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { type DeviceMetadata, metadataFile } from "./device-metadata.ts";

/**
 * Files with metadata of prepared devices, which CDI files mount into containers: one directory per claim and driver,
 * with one file per request. The container runtime must see them at the same path.
 */
export class MetadataDirectory {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** Returns the path of a request's file. */
  fileOf(driver: string, uid: string, request: string): string {
    return join(this.#directoryOf(driver, uid), `${request}.json`);
  }

  /** Returns whether all files of a claim are as written. */
  has(driver: string, uid: string, metadata: DeviceMetadata): boolean {
    return Object.entries(metadata).every(([request, body]) => {
      try {
        return readFileSync(this.fileOf(driver, uid, request), "utf8") === metadataFile(body);
      } catch {
        return false;
      }
    });
  }

  /**
   * Writes the files of a claim, each atomically, without syncing them: after a power failure, the comparison at the
   * start restores them. A container keeps the file that it was created with.
   */
  write(driver: string, uid: string, metadata: DeviceMetadata): void {
    mkdirSync(this.#directoryOf(driver, uid), { recursive: true, mode: 0o755 });
    for (const [request, body] of Object.entries(metadata)) {
      const path = this.fileOf(driver, uid, request);
      const hidden = `${path}.${randomBytes(4).toString("hex")}.tmp`;
      try {
        writeFileSync(hidden, metadataFile(body), { flag: "wx", mode: 0o644 });
        renameSync(hidden, path);
      } catch (error) {
        rmSync(hidden, { force: true });
        throw error;
      }
    }
  }

  /** Removes all files of a claim, also those of interrupted writes. */
  async remove(driver: string, uid: string): Promise<void> {
    const directory = this.#directoryOf(driver, uid);
    // Most drivers have none; the agent may not even be allowed to look.
    if (existsSync(directory)) await rm(directory, { recursive: true, force: true });
  }

  /**
   * Removes the files of claims that are not recorded: their record and CDI file were lost. Keeps everything that the
   * agent did not write, because the directory may be shared.
   */
  async removeExcept(recorded: readonly { driver: string; uid: string }[]): Promise<void> {
    const kept = new Set(recorded.map(({ driver, uid }) => nameOf(driver, uid)));
    const entries = existsSync(this.#path) ? await readdir(this.#path, { withFileTypes: true }) : [];
    for (const entry of entries) {
      if (kept.has(entry.name) || !entry.isDirectory() || !ownName.test(entry.name)) continue;
      const directory = join(this.#path, entry.name);
      const files = await readdir(directory, { withFileTypes: true });
      if (!files.every((file) => file.isFile() && ownFile.test(file.name))) continue;
      for (const file of files) await rm(join(directory, file.name), { force: true });
      await rmdir(directory);
    }
  }

  #directoryOf(driver: string, uid: string): string {
    return join(this.#path, nameOf(driver, uid));
  }
}

// "<driver>_<uid>", with a file for each request.
const ownName = /^[a-z0-9][a-z0-9.-]*_[A-Za-z0-9-]{1,64}$/;
const ownFile = /^[a-z0-9-]+\.json(\.[0-9a-f]{8}\.tmp)?$/;

function nameOf(driver: string, uid: string): string {
  return `${driver}_${uid}`;
}
