import { existsSync, type Stats } from "node:fs";
import { readlink, stat } from "node:fs/promises";
import { join } from "node:path";
import { messageOf, NodekeeperError, quote } from "@nodekeeper/core/lib";

export interface HostFilesOptions {
  /** Where the host's files are found. */
  root: string;
  /** Absolute paths: what drivers' edits may name on the host lies in one of them. */
  allowed: readonly string[];
}

const MOST_LINKS = 40;
const setting = "devices.kubeletPlugin.hostPaths";

/** What drivers' edits may name on the node, and whether it is there. */
export class HostFiles {
  readonly #options: HostFilesOptions;

  constructor(options: HostFilesOptions) {
    this.#options = options;
  }

  /** Whether edits may name some paths only. */
  get isRestricted(): boolean {
    return !this.#options.allowed.includes("/");
  }

  /**
   * Throws `invalid` for a path outside of what drivers may use, also where it leads there by symbolic links; and where the
   * agent can't see the path, and so not where it leads.
   */
  async checkAllowed(path: string, field: string): Promise<void> {
    if (!this.isRestricted) return;
    const { allowed } = this.#options;
    const outside = (what: string) =>
      refusal(field, `${what} is outside of ${allowed.join(", ")} (${setting})`);
    if (!isWithin(path, allowed)) throw outside(quote(path));
    if (!this.#isVisible(path))
      throw refusal(field, `${quote(path)} is not visible to the agent, so that ${setting} can't be checked`);
    const resolved = await this.#resolved(path, field);
    const folders = await Promise.all(allowed.map((folder) => this.#resolved(folder, field)));
    if (!isWithin(resolved, folders)) throw outside(`${quote(path)}, which leads to ${quote(resolved)},`);
  }

  /** Throws `invalid` where edits give a device by numbers that are not those of an allowed file on the node. */
  async checkNumbers(
    path: string,
    { type, major, minor }: { type: string; major: number; minor: number },
    field: string,
  ): Promise<void> {
    if (!this.isRestricted) return;
    const found = await this.#stat(path, field);
    const isSame =
      found !== undefined &&
      (type === "b" ? found.isBlockDevice() : found.isCharacterDevice()) &&
      majorOf(found.rdev) === major &&
      minorOf(found.rdev) === minor;
    if (!isSame)
      throw refusal(field, `${major}:${minor} is not the device ${quote(path)} on the node (${setting})`);
  }

  /** Throws `invalid` where there is no device of that path on the node, as far as the agent sees the node's files. */
  async checkDevice(path: string, field: string): Promise<void> {
    const found = await this.#stat(path, field);
    if (found && !found.isCharacterDevice() && !found.isBlockDevice() && !found.isFIFO())
      throw refusal(field, `${quote(path)} is no device on the node`);
  }

  /** Throws `invalid` where the node has no such path, as far as the agent sees the node's files. */
  async checkExists(path: string, field: string): Promise<void> {
    await this.#stat(path, field);
  }

  // In a container, only some of the host's folders may be mounted there.
  #isVisible(path: string): boolean {
    return existsSync(join(this.#options.root, path.split("/")[1]!));
  }

  async #stat(path: string, field: string): Promise<Stats | undefined> {
    const { root } = this.#options;
    if (root !== "/" && !this.#isVisible(path)) return undefined;
    try {
      return await stat(join(root, root === "/" ? path : await this.#resolved(path, field)));
    } catch (error) {
      if (error instanceof NodekeeperError) throw error;
      const isMissing = (error as NodeJS.ErrnoException).code === "ENOENT";
      throw refusal(
        field,
        `${quote(path)} ${isMissing ? "is not there on the node" : `can't be read: ${messageOf(error)}`}`,
      );
    }
  }

  // As realpath(3), with links as the host has them: an absolute one leads to a path below the root. What does not exist
  // leads to itself.
  async #resolved(path: string, field: string): Promise<string> {
    let rest = parts(path);
    let done: string[] = [];
    for (let links = 0; rest.length > 0; ) {
      const [part = "", ...after] = rest;
      rest = after;
      if (part === "..") {
        done.pop();
        continue;
      }
      const target = await linkTarget(join(this.#options.root, ...done, part));
      if (target === undefined) {
        done.push(part);
        continue;
      }
      if (++links > MOST_LINKS) throw refusal(field, `${quote(path)} leads through too many symbolic links`);
      if (target.startsWith("/")) done = [];
      rest = [...parts(target), ...rest];
    }
    return `/${done.join("/")}`;
  }
}

function isWithin(path: string, folders: readonly string[]): boolean {
  return folders.some((folder) => {
    const prefix = folder.replace(/\/$/, "");
    return path === prefix || path.startsWith(`${prefix}/`);
  });
}

function parts(path: string): string[] {
  return path.split("/").filter((part) => part !== "" && part !== ".");
}

async function linkTarget(path: string): Promise<string | undefined> {
  // Neither a link nor a file: both are found out by `stat`.
  return await readlink(path).catch(() => undefined);
}

// gnu_dev_major(3) and gnu_dev_minor(3), for numbers below 2^12 and 2^20, as all of Linux are.
function majorOf(rdev: number): number {
  return (rdev >>> 8) & 0xfff;
}

function minorOf(rdev: number): number {
  return (rdev & 0xff) | ((rdev >>> 12) & 0xfff00);
}

function refusal(field: string, message: string): NodekeeperError {
  return new NodekeeperError("invalid", `edits.${field}: ${message}`);
}
