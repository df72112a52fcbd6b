import { join, relative, sep } from "node:path";
import { PluginShareUsed, TooManyPlugins } from "@nodekeeper/api/errors";
import type { Timer } from "@nodekeeper/core/lib";
import type { PluginSettings } from "./context.ts";

/** A name and the user it belongs to, as stored. */
export interface NamedUser {
  type: string;
  name: string;
  /** User ID. */
  uid: number;
}

/** A name that is registered, or was until recently. */
export interface HeldName extends NamedUser {
  /** Result of `Shares.directoryOf`. Undefined until the plugin registers again after the agent's start. */
  directory: string | undefined;
  /** Monotonic milliseconds. Undefined while the plugin is registered. */
  lostAt: number | undefined;
  /** The hold does not end before this time, monotonic milliseconds. */
  notBefore: number;
  timer: Timer | undefined;
}

type Settings = Pick<PluginSettings, "directories" | "maxPlugins">;
type Place = Pick<HeldName, "uid" | "directory">;

/**
 * Divides the capacity for registered and for lost plugins, so that a user or a directory with many names
 * cannot exclude others. A directory is a subdirectory of a watched directory with everything below it, or a
 * watched directory without its subdirectories.
 *
 * 1. A user other than root and the agent's user, and a subdirectory, may each have at most half of
 *    `maxPlugins` registered. Further plugins are refused.
 * 2. Each such user and subdirectory may also have at most half of `maxPlugins` lost plugins, and all
 *    together `maxPlugins`. Beyond that, the grace period of the plugin that was lost first ends early: of
 *    the user or directory that exceeds its half, otherwise of the largest group of one user in one
 *    directory. Lost plugins do not prevent others from being registered.
 */
export class Shares {
  readonly #settings: Settings;
  readonly #share: number;

  constructor(settings: Settings) {
    this.#settings = settings;
    this.#share = Math.ceil(settings.maxPlugins / 2);
  }

  /** Returns the directory that a socket is attributed to. */
  directoryOf(registrationSocket: string): string | undefined {
    for (const directory of this.#settings.directories) {
      const [first = "", ...rest] = relative(directory, registrationSocket).split(sep);
      if (first === ".." || first === "") continue;
      return rest.length === 0 ? directory : join(directory, first);
    }
    return undefined;
  }

  /** Throws `exhausted` if no further plugin can be registered. */
  checkRegistered(place: Place, held: Iterable<HeldName>): void {
    const { maxPlugins } = this.#settings;
    const registered = [...held].filter(({ lostAt }) => lostAt === undefined);
    if (registered.length >= maxPlugins) throw new TooManyPlugins({ limit: maxPlugins });
    for (const { what, isOf } of this.#limited(place)) {
      const count = registered.filter(isOf).length;
      if (count < this.#share) continue;
      throw new PluginShareUsed({ who: what, count, limit: maxPlugins });
    }
  }

  /**
   * Returns the lost plugins whose grace period ends early because another one was lost.
   * @param isKept returns whether a name must be kept, and therefore does not count
   */
  displaced(newest: HeldName, held: Iterable<HeldName>, isKept: (held: HeldName) => boolean): HeldName[] {
    const lost = [...held].filter((each) => each.lostAt !== undefined && !isKept(each));
    const displaced = new Set<HeldName>();
    for (const { isOf } of this.#limited(newest)) {
      const own = lost.filter((each) => isOf(each) && !displaced.has(each));
      for (const each of oldest(own, own.length - this.#share)) displaced.add(each);
    }
    const left = lost.filter((each) => !displaced.has(each));
    if (left.length > this.#settings.maxPlugins)
      for (const each of oldest(largest(left), 1)) displaced.add(each);
    return [...displaced];
  }

  /** Returns why the grace period of a lost plugin ends early. */
  reason({ uid, directory }: Place): string {
    const where = directory === undefined ? "" : ` in ${directory}`;
    return `too many plugins of user ID ${uid}${where} are lost (plugins.maxPlugins ${this.#settings.maxPlugins})`;
  }

  // Returns the user and the directory of the place if a share limits them.
  #limited({ uid, directory }: Place): { what: string; isOf: (place: Place) => boolean }[] {
    const isSubdirectory = directory !== undefined && !this.#settings.directories.includes(directory);
    const isTrusted = uid === 0 || uid === process.getuid?.();
    return [
      ...(isTrusted ? [] : [{ what: `user ID ${uid}`, isOf: (place: Place) => place.uid === uid }]),
      ...(isSubdirectory
        ? [{ what: `directory ${directory}`, isOf: (place: Place) => place.directory === directory }]
        : []),
    ];
  }
}

function largest(lost: readonly HeldName[]): HeldName[] {
  const groups = Map.groupBy(lost, ({ uid, directory }) => `${uid} ${directory ?? ""}`);
  return [...groups.values()].reduce((most, group) => (group.length > most.length ? group : most), []);
}

function oldest(lost: readonly HeldName[], count: number): HeldName[] {
  return [...lost].sort((a, b) => a.lostAt! - b.lostAt!).slice(0, Math.max(count, 0));
}
