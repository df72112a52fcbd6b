import { randomBytes } from "node:crypto";
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { InotifyWatches, silentLogger } from "@nodekeeper/core/lib";
import { type FileOwner, ownerOf } from "./cdi-file.ts";
import { MetadataDirectory } from "./metadata-directory.ts";

const PREFIX = "nodekeeper-";
const SUFFIX = ".yaml";

/**
 * The agent's files in a directory of CDI specs, which container runtimes watch: one file per claim and driver. A file
 * is a comment followed by JSON, so it is valid YAML. The metadata that a file mounts is written before it and removed
 * after it.
 */
export class CdiDirectory {
  readonly path: string;
  readonly #metadata: MetadataDirectory;
  readonly #watches: InotifyWatches;

  /**
   * @param metadata path of the directory with metadata of devices
   * @param watches starts the directory's watch; default: a separate instance that does not log
   */
  constructor(path: string, metadata: string, watches = new InotifyWatches(silentLogger)) {
    this.path = path;
    this.#metadata = new MetadataDirectory(metadata);
    this.#watches = watches;
  }

  /** Returns the path of a request's metadata. */
  metadataOf(driver: string, uid: string, request: string): string {
    return this.#metadata.fileOf(driver, uid, request);
  }

  /** See `MetadataDirectory.removeExcept`. */
  async removeMetadataExcept(recorded: readonly { driver: string; uid: string }[]): Promise<void> {
    await this.#metadata.removeExcept(recorded);
  }

  /** Returns whether the metadata that a CDI file of the agent mounts is as written. */
  hasMetadata(text: string): boolean {
    const owner = ownerWithMetadata(text);
    return !owner?.metadata || this.#metadata.has(owner.driver, owner.uid, owner.metadata);
  }

  nameOf(driver: string, uid: string): string {
    return `${PREFIX}${driver}_${uid}${SUFFIX}`;
  }

  /** Returns whether the agent wrote a file, judged by its name. */
  isOwn(name: string): boolean {
    return name.startsWith(PREFIX) && name.endsWith(SUFFIX);
  }

  /**
   * Returns the names of all files in the directory, including those of other vendors. Creates the directory if it is
   * missing.
   */
  async names(): Promise<Set<string>> {
    try {
      return new Set(await readdir(this.path));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      this.#create();
      return new Set();
    }
  }

  /** Returns the names of files left by interrupted writes of the agent. */
  async temporaryFiles(): Promise<string[]> {
    return [...(await this.names())].filter((name) => name.startsWith(`.${PREFIX}`) && name.endsWith(".tmp"));
  }

  /**
   * Writes a file atomically, without syncing it: after a power failure, the comparison at the start restores it. On
   * most hosts the directory is in memory, where four synchronous calls are cheaper than one on libuv's thread pool.
   */
  write(driver: string, uid: string, text: string): void {
    const metadata = ownerWithMetadata(text)?.metadata;
    if (metadata) this.#metadata.write(driver, uid, metadata);
    // Runtimes read only *.json and *.yaml files.
    const hidden = join(this.path, `.${PREFIX}${uid}-${randomBytes(4).toString("hex")}.tmp`);
    try {
      this.#writeNew(hidden, text);
      renameSync(hidden, join(this.path, this.nameOf(driver, uid)));
    } catch (error) {
      rmSync(hidden, { force: true });
      throw error;
    }
  }

  /** Undefined if there is no such file. */
  async read(driver: string, uid: string): Promise<string | undefined> {
    return await this.readNamed(this.nameOf(driver, uid));
  }

  async remove(driver: string, uid: string): Promise<void> {
    await this.removeNamed(this.nameOf(driver, uid));
    await this.#metadata.remove(driver, uid);
  }

  /** Undefined if there is no such file. */
  async readNamed(name: string): Promise<string | undefined> {
    try {
      return await readFile(join(this.path, name), "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  async removeNamed(name: string): Promise<void> {
    await rm(join(this.path, name), { force: true });
  }

  /**
   * Calls back when a file without a leading dot is created, removed or replaced, until the signal aborts. Creates the
   * directory. Never calls back if it can't be created or watched.
   */
  watch(onChange: () => void, signal: AbortSignal): void {
    try {
      this.#create();
    } catch {
      // The periodic comparison finds the changes.
      return;
    }
    const watcher = this.#watches.start(this.path, (event, name) => {
      if (event === "rename" && !name?.startsWith(".")) onChange();
    });
    signal.addEventListener("abort", () => watcher?.close(), { once: true });
  }

  #writeNew(path: string, text: string): void {
    const options = { flag: "wx", mode: 0o644 };
    try {
      writeFileSync(path, text, options);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      this.#create();
      writeFileSync(path, text, options);
    }
  }

  #create(): void {
    mkdirSync(this.path, { recursive: true, mode: 0o755 });
  }
}

// Few files mount metadata: the others are not parsed.
function ownerWithMetadata(text: string): FileOwner | undefined {
  return text.includes('"metadata"') ? ownerOf(text) : undefined;
}
