import { randomBytes } from "node:crypto";
import { mkdirSync, renameSync, rmSync, watch, writeFileSync } from "node:fs";
import { readdir, readFile, unlink } from "node:fs/promises";
import { join } from "node:path";

const PREFIX = "nodekeeper-";
const SUFFIX = ".yaml";

/**
 * The agent's files in a folder of CDI specs, which container runtimes watch: one for each claim and driver. They are YAML
 * for the sake of a comment, and JSON but for that.
 */
export class CdiFolder {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  nameOf(driver: string, uid: string): string {
    return `${PREFIX}${driver}_${uid}${SUFFIX}`;
  }

  /** Whether a file is one of the agent's, by its name. */
  isOwn(name: string): boolean {
    return name.startsWith(PREFIX) && name.endsWith(SUFFIX);
  }

  /** Names of all files in the folder, also those of others. Makes the folder where it is missing. */
  async names(): Promise<Set<string>> {
    try {
      return new Set(await readdir(this.path));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      this.#create();
      return new Set();
    }
  }

  /** Names of files that interrupted writes of the agent left. */
  async temporaryFiles(): Promise<string[]> {
    return [...(await this.names())].filter((name) => name.startsWith(`.${PREFIX}`) && name.endsWith(".tmp"));
  }

  /**
   * Writes a file so that runtimes see all of it or nothing. It is not synced: what a power cut leaves is compared with the
   * records at the start. The folder is in memory on most hosts, where four calls cost less than one of libuv's threads.
   */
  write(driver: string, uid: string, text: string): void {
    // Runtimes read *.json and *.yaml alone.
    const hidden = join(this.path, `.${PREFIX}${uid}-${randomBytes(4).toString("hex")}.tmp`);
    try {
      this.#writeNew(hidden, text);
      renameSync(hidden, join(this.path, this.nameOf(driver, uid)));
    } catch (error) {
      rmSync(hidden, { force: true });
      throw error;
    }
  }

  /** Undefined where there is no such file. */
  async read(driver: string, uid: string): Promise<string | undefined> {
    return await this.readNamed(this.nameOf(driver, uid));
  }

  async remove(driver: string, uid: string): Promise<void> {
    await this.removeNamed(this.nameOf(driver, uid));
  }

  /** Undefined where there is no such file. */
  async readNamed(name: string): Promise<string | undefined> {
    return await readText(join(this.path, name));
  }

  async removeNamed(name: string): Promise<void> {
    await removeFile(join(this.path, name));
  }

  /**
   * Calls back when a file without a dot in front came, went or was replaced, until the signal aborts; makes the folder. Where it can't be made or
   * watched, no callback is called.
   */
  watch(onChange: () => void, signal: AbortSignal): void {
    try {
      this.#create();
      const watcher = watch(this.path, { persistent: false, signal }, (event, name) => {
        if (event === "rename" && !name?.startsWith(".")) onChange();
      });
      watcher.on("error", () => watcher.close());
    } catch {
      // No such folder, or no inotify handles left: the interval serves.
    }
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

async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

async function removeFile(path: string): Promise<void> {
  await unlink(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
}
