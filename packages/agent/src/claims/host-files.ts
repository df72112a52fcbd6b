import { existsSync, type Stats } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { DriverAnswerRefused, HostPathNotTrusted } from "@nodekeeper/api/errors";
import { messageOf, NodekeeperError, quote } from "@nodekeeper/core/lib";
import { defaultRouteOver, defaultRoutes } from "./host-interfaces.ts";
import { type FollowedPath, followPath, type SeenComponents } from "./host-path.ts";

export interface HostFilesOptions {
  /** Where the agent sees the host's root directory. */
  root: string;
  /** Absolute paths. Drivers' edits may only refer to host paths within them. */
  allowed: readonly string[];
  /** Whether drivers that run as root may use paths that other users can change. Default: false. */
  exemptRootDrivers?: boolean;
}

const setting = "devices.kubeletPlugin.hostPaths";

/** Checks the host paths in drivers' edits: whether they are allowed and exist. */
export class HostFiles {
  readonly #options: HostFilesOptions;
  readonly #isExempt: boolean;
  readonly #seen: SeenComponents | undefined;
  #routes: Promise<ReadonlySet<string>> | undefined;

  /**
   * @param isExempt whether owners and modes of paths are not checked
   * @param seen components read so far; undefined: each path is followed again
   */
  constructor(options: HostFilesOptions, isExempt = false, seen?: SeenComponents) {
    this.#options = options;
    this.#isExempt = isExempt;
    this.#seen = seen;
  }

  /**
   * Returns the checks for one preparation, or for one check of a file. Owners and modes of paths are not checked if
   * `exemptRootDrivers` is set and the user ID is 0.
   * @param uid user ID that the driver's sockets belong to; undefined if it is unknown
   */
  forDriverOf(uid: number | undefined): HostFiles {
    const { exemptRootDrivers = false } = this.#options;
    return new HostFiles(this.#options, uid === 0 && exemptRootDrivers, new Map());
  }

  /** Whether edits may only use some paths. */
  get isRestricted(): boolean {
    return !this.#options.allowed.includes("/");
  }

  /**
   * Throws `invalid` for a path that
   * - is outside of the allowed directories, also through symbolic links;
   * - is not visible to the agent while drivers are restricted, because it can't be resolved;
   * - has a component that users other than root can change, unless the driver is exempt: they could redirect it after
   *   this check. The error names the component.
   */
  async checkAllowed(path: string, field: string): Promise<void> {
    const { allowed } = this.#options;
    const outside = (what: string) =>
      refusal(field, `${what} is outside of ${allowed.join(", ")} (${setting})`);
    if (!isWithin(path, allowed)) throw outside(quote(path));
    if (!this.#isVisible(path)) {
      if (!this.isRestricted) return;
      throw refusal(field, `${quote(path)} is not visible to the agent, so ${setting} can't be checked`);
    }
    const { resolved, weakness } = await this.#followed(path, field);
    if (this.isRestricted) {
      const directories = await Promise.all(allowed.map((directory) => this.#resolved(directory, field)));
      if (!isWithin(resolved, directories))
        throw outside(`${quote(path)}, which leads to ${quote(resolved)},`);
    }
    if (!weakness || this.#isExempt) return;
    const { component, what } = weakness;
    const where = component === path ? "" : ` on the way to ${quote(path)}`;
    throw refusal(
      field,
      `${quote(component)}${where} ${what}; each component must belong to root and be writable by root alone`,
      HostPathNotTrusted,
    );
  }

  /**
   * Throws `invalid` for a network interface of the node that must not be moved into a container:
   * - one whose path `/sys/class/net/<name>` is not within the allowed directories;
   * - one that carries a default route of the node, itself or through an interface on top of it: the node would lose
   *   its network connection and could not be reached to undo that. No setting permits it;
   * - any, if the node's routes can't be read.
   */
  async checkInterface(name: string, field: string): Promise<void> {
    const { root, allowed } = this.#options;
    if (!isWithin(`/sys/class/net/${name}`, allowed))
      throw refusal(field, `"/sys/class/net/${name}" is outside of ${allowed.join(", ")} (${setting})`);
    let carrier: string | undefined;
    try {
      // Once for all interfaces of a preparation.
      const routes = (this.#seen && this.#routes) ?? defaultRoutes(root);
      this.#routes = routes;
      carrier = await defaultRouteOver(root, name, await routes);
    } catch (error) {
      throw refusal(
        field,
        `${quote(name)} may be the node's uplink: its routes can't be read (hostRoot): ${messageOf(error)}`,
      );
    }
    if (carrier === undefined) return;
    const how = carrier === name ? "" : `${quote(carrier)} on top of it `;
    throw refusal(
      field,
      `${quote(name)}: ${how}carries a default route of the node, which would lose its network connection`,
    );
  }

  /** Throws `invalid` if device numbers in edits differ from those of the allowed file on the node. */
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

  /** Throws `invalid` if the path is not a device on the node, as far as the agent can see the node's files. */
  async checkDevice(path: string, field: string): Promise<void> {
    const found = await this.#stat(path, field);
    if (found && !found.isCharacterDevice() && !found.isBlockDevice() && !found.isFIFO())
      throw refusal(field, `${quote(path)} is not a device on the node`);
  }

  /** Throws `invalid` if the path does not exist on the node, as far as the agent can see the node's files. */
  async checkExists(path: string, field: string): Promise<void> {
    await this.#stat(path, field);
  }

  // The agent's container may have only some of the host's directories mounted.
  #isVisible(path: string): boolean {
    return this.#options.root === "/" || existsSync(join(this.#options.root, path.split("/")[1]!));
  }

  async #stat(path: string, field: string): Promise<Stats | undefined> {
    const { root } = this.#options;
    if (!this.#isVisible(path)) return undefined;
    try {
      const { resolved, stats } = await this.#followed(path, field);
      // A path that leads through links which only the kernel can follow, as in /proc, is not found above.
      return stats ?? (await stat(join(root, root === "/" ? path : resolved)));
    } catch (error) {
      if (error instanceof NodekeeperError) throw error;
      const isMissing = (error as NodeJS.ErrnoException).code === "ENOENT";
      throw refusal(
        field,
        `${quote(path)} ${isMissing ? "does not exist on the node" : `can't be read: ${messageOf(error)}`}`,
      );
    }
  }

  async #resolved(path: string, field: string): Promise<string> {
    return (await this.#followed(path, field)).resolved;
  }

  async #followed(path: string, field: string): Promise<FollowedPath> {
    const followed = await followPath(this.#options.root, path, this.#seen);
    if (!followed) throw refusal(field, `${quote(path)} leads through too many symbolic links`);
    return followed;
  }
}

function isWithin(path: string, directories: readonly string[]): boolean {
  return directories.some((directory) => {
    const prefix = directory.replace(/\/$/, "");
    return path === prefix || path.startsWith(`${prefix}/`);
  });
}

// As gnu_dev_major(3) and gnu_dev_minor(3), for majors below 2^12 and minors below 2^20, which are all that Linux has.
function majorOf(rdev: number): number {
  return (rdev >>> 8) & 0xfff;
}

function minorOf(rdev: number): number {
  return (rdev & 0xff) | ((rdev >>> 12) & 0xfff00);
}

function refusal(field: string, message: string, Refusal = DriverAnswerRefused): NodekeeperError {
  return new Refusal({ problem: `edits.${field}: ${message}` });
}
