import { randomBytes } from "node:crypto";
import { mkdirSync, watch } from "node:fs";
import { mkdir, open, readdir, readFile, rename, unlink } from "node:fs/promises";
import { join } from "node:path";

const PREFIX = "nodekeeper-";
const SUFFIX = ".yaml";

/**
 * The agent's files in a folder of CDI specs, which container runtimes watch: one for each claim and driver. They are YAML
 * for the sake of a comment, and JSON but for that.
 */
export class CdiFolder {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  nameOf(driver: string, uid: string): string {
    return `${PREFIX}${driver}_${uid}${SUFFIX}`;
  }

  /** What is in the folder; empty where it is not there. */
  async names(): Promise<Set<string>> {
    return new Set(await readdir(this.#path).catch(() => []));
  }

  /** Writes a file so that runtimes see all of it or nothing. */
  async write(driver: string, uid: string, text: string): Promise<void> {
    await mkdir(this.#path, { recursive: true, mode: 0o755 });
    const path = join(this.#path, this.nameOf(driver, uid));
    // Runtimes read *.json and *.yaml alone.
    const hidden = join(this.#path, `.${PREFIX}${uid}-${randomBytes(4).toString("hex")}.tmp`);
    try {
      await using file = await open(hidden, "wx", 0o644);
      await file.writeFile(text);
      // Else a power cut may leave an empty file of the right name.
      await file.datasync();
      await rename(hidden, path);
    } catch (error) {
      await unlink(hidden).catch(() => {});
      throw error;
    }
  }

  /** Undefined where there is no such file. */
  async read(driver: string, uid: string): Promise<string | undefined> {
    return await readText(join(this.#path, this.nameOf(driver, uid)));
  }

  async remove(driver: string, uid: string): Promise<void> {
    await removeFile(join(this.#path, this.nameOf(driver, uid)));
  }

  /** The agent's files by their names, and what of them is readable. What an interrupted write left is removed. */
  async list(): Promise<{ name: string; text: string }[]> {
    const names = await this.names();
    const files: { name: string; text: string }[] = [];
    for (const name of names) {
      if (name.startsWith(`.${PREFIX}`) && name.endsWith(".tmp")) await removeFile(join(this.#path, name));
      if (!name.startsWith(PREFIX) || !name.endsWith(SUFFIX)) continue;
      const text = await readText(join(this.#path, name));
      if (text !== undefined) files.push({ name, text });
    }
    return files;
  }

  async removeNamed(name: string): Promise<void> {
    await removeFile(join(this.#path, name));
  }

  /**
   * Calls back when a file came, went or was replaced, until the signal aborts; makes the folder. Where it can't be made or
   * watched, nobody is called.
   */
  watch(onChange: () => void, signal: AbortSignal): void {
    try {
      mkdirSync(this.#path, { recursive: true, mode: 0o755 });
      const watcher = watch(this.#path, { persistent: false, signal }, (event) => {
        if (event === "rename") onChange();
      });
      watcher.on("error", () => watcher.close());
    } catch {
      // No such folder, or no inotify handles left: the interval serves.
    }
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
