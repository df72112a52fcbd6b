import { existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { messageOf, NodekeeperError, quote } from "@nodekeeper/core/lib";

export interface HostFilesOptions {
  /** Where the host's files are found. */
  root: string;
  /** Absolute paths: what drivers' edits may name on the host lies in one of them. */
  allowed: readonly string[];
}

/** What drivers' edits may name on the node, and whether it is there. */
export class HostFiles {
  readonly #options: HostFilesOptions;

  constructor(options: HostFilesOptions) {
    this.#options = options;
  }

  /** Throws `invalid` for a path outside of what drivers may use. */
  checkAllowed(path: string, field: string): void {
    const { allowed } = this.#options;
    const isWithin = allowed.some(
      (folder) => folder === "/" || path === folder || path.startsWith(`${folder.replace(/\/$/, "")}/`),
    );
    if (!isWithin)
      throw refusal(
        field,
        `${quote(path)} is outside of ${allowed.join(", ")} (devices.kubeletPlugin.hostPaths)`,
      );
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

  async #stat(path: string, field: string) {
    const { root } = this.#options;
    // In a container, only some of the host's folders may be mounted there.
    if (!existsSync(join(root, path.split("/")[1]!))) {
      if (root === "/") throw refusal(field, `${quote(path)} is not there on the node`);
      return undefined;
    }
    try {
      return await stat(join(root, path));
    } catch (error) {
      const isMissing = (error as NodeJS.ErrnoException).code === "ENOENT";
      throw refusal(
        field,
        `${quote(path)} ${isMissing ? "is not there on the node" : `can't be read: ${messageOf(error)}`}`,
      );
    }
  }
}

function refusal(field: string, message: string): NodekeeperError {
  return new NodekeeperError("invalid", `edits.${field}: ${message}`);
}
