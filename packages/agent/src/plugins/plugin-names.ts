import { PluginNameBound, PluginNameOwned } from "@nodekeeper/api/errors";
import { type Clock, type Logger, messageOf, quote } from "@nodekeeper/core/lib";
import type { PluginCandidate } from "./plugin-info.ts";
import { type HeldName, type NamedUser, Shares } from "./shares.ts";
import type { PluginHandler, PluginRegistration } from "./types.ts";

/** Persists the users of names across restarts of the agent. */
export interface PluginNameStore {
  names(): NamedUser[];
  save(named: NamedUser): void;
  remove(named: Pick<NamedUser, "type" | "name">): void;
}

export interface PluginNamesOptions {
  store: PluginNameStore;
  /** Handlers by plugin type. */
  handlers: ReadonlyMap<string, PluginHandler>;
  /** User IDs that the configuration binds names to, by lowercase name. */
  bound: ReadonlyMap<string, number>;
  /** The watched directories, as absolute paths. */
  directories: readonly string[];
  /** Maximum number of registered plugins, and of lost plugins in their grace period. */
  maxPlugins: number;
  /** Minimum time after the agent's start for which a name stays with its user, in milliseconds. */
  returnMs: number;
  /** Called when a name became free. */
  onVacancy(): void;
  /**
   * Called when the grace period of a lost plugin ended early because its user or directory has too many lost
   * plugins.
   */
  onDisplaced(named: NamedUser, reason: string): void;
  clock: Clock;
  log: Logger;
}

// A configuration reload may change a hold, and the hold of a driver ends with its last claim.
const RECHECK_MS = 10_000;

/**
 * Decides which user may register a name, for plugins of all types.
 *
 * 1. A name belongs to the user whose plugin registered it until that plugin is lost and its grace period
 *    ends (`PluginHandler.holdMs`), even across a restart of the agent. Meanwhile plugins of other users are
 *    refused.
 * 2. Names of one type that differ only in case belong to one user.
 * 3. A name that the configuration binds to a user always belongs to that user.
 * 4. No user or directory can exhaust the capacity available to others: see `Shares`.
 */
export class PluginNames {
  readonly #options: PluginNamesOptions;
  readonly #shares: Shares;
  readonly #held = new Map<string, HeldName>();

  constructor(options: PluginNamesOptions) {
    this.#options = options;
    this.#shares = new Shares(options);
    for (const { type, name, uid } of options.store.names())
      this.#held.set(keyOf({ type, name }), {
        ...{ type, name, uid, directory: undefined, lostAt: 0, notBefore: 0, timer: undefined },
      });
  }

  /** Starts the grace period of names that were registered when the agent stopped. */
  start(): void {
    const now = this.#options.clock.monotonic();
    for (const held of this.#held.values()) {
      if (held.lostAt === undefined) continue;
      held.lostAt = now;
      held.notBefore = now + this.#options.returnMs;
      this.#arm(held);
    }
  }

  /** Cancels all timers. */
  close(): void {
    for (const { timer } of this.#held.values()) timer?.cancel();
  }

  /**
   * Reserves a name for a plugin that is about to be registered. Returns a function that reverts this if the
   * registration fails. Throws `forbidden` (bound to another user), `conflict` (belongs to another user) or
   * `exhausted` (too many plugins).
   */
  take(candidate: PluginCandidate): () => void {
    const { type, name, uid, registrationSocket } = candidate;
    this.#checkUser(candidate);
    const before = this.#held.get(keyOf(candidate));
    const directory = this.#shares.directoryOf(registrationSocket);
    if (before && before.lostAt === undefined) {
      before.directory = directory;
      return () => {};
    }
    this.#shares.checkRegistered({ uid, directory }, this.#held.values());
    before?.timer?.cancel();
    const held = { type, name, uid, directory, lostAt: undefined, notBefore: 0, timer: undefined };
    this.#held.set(keyOf(candidate), held);
    if (before?.uid !== uid) this.#store("save", held);
    return () => {
      if (before) this.#held.set(keyOf(candidate), before);
      else this.#forget(held);
      if (before) this.#arm(before);
    };
  }

  /** Called when the plugin of a name is lost. The name is held for its user from now on. */
  leave(registration: PluginRegistration): void {
    const held = this.#held.get(keyOf(registration));
    if (!held) return;
    held.lostAt = this.#options.clock.monotonic();
    this.#arm(held);
    for (const displaced of this.#shares.displaced(held, this.#held.values(), (each) =>
      this.#isEndless(each),
    ))
      this.#displace(displaced);
  }

  #checkUser({ type, name, uid }: PluginCandidate): void {
    const { bound, clock } = this.#options;
    const owner = bound.get(name.toLowerCase());
    if (owner === uid) return;
    if (owner !== undefined) throw new PluginNameBound({ name: quote(name), owner, uid });
    for (const held of this.#held.values()) {
      if (held.type !== type || held.uid === uid || held.name.toLowerCase() !== name.toLowerCase()) continue;
      const left = held.lostAt === undefined ? 0 : this.#heldUntil(held) - clock.monotonic();
      if (held.lostAt !== undefined && left <= 0) continue;
      const state = stateOf(held, left);
      throw new PluginNameOwned({ type: held.type, name: quote(name), uid: held.uid, state });
    }
  }

  #heldUntil(held: HeldName): number {
    const { type, name, lostAt = Number.POSITIVE_INFINITY, notBefore } = held;
    return Math.max(lostAt + (this.#options.handlers.get(type)?.holdMs(name) ?? 0), notBefore);
  }

  #isEndless(held: HeldName): boolean {
    return this.#heldUntil(held) === Number.POSITIVE_INFINITY;
  }

  #arm(held: HeldName): void {
    const { clock, onVacancy } = this.#options;
    held.timer?.cancel();
    const leftMs = this.#heldUntil(held) - clock.monotonic();
    held.timer = clock.after(Math.min(Math.max(leftMs, 0), RECHECK_MS), () => {
      if (this.#heldUntil(held) > clock.monotonic()) return this.#arm(held);
      this.#forget(held);
      onVacancy();
    });
  }

  #displace(held: HeldName): void {
    const { handlers, onDisplaced } = this.#options;
    const { type, name } = held;
    const reason = this.#shares.reason(held);
    this.#forget(held);
    handlers.get(type)?.forget(name, reason);
    onDisplaced(held, reason);
  }

  #forget(held: HeldName): void {
    held.timer?.cancel();
    this.#held.delete(keyOf(held));
    this.#store("remove", held);
  }

  // A name that cannot be stored is held until the agent restarts.
  #store(operation: "save" | "remove", held: HeldName): void {
    const { store, log } = this.#options;
    try {
      store[operation](held);
    } catch (error) {
      const { type, name } = held;
      log.warn({ type, plugin: name, reason: messageOf(error) }, "user of a plugin's name not stored");
    }
  }
}

function stateOf({ lostAt }: HeldName, leftMs: number): string {
  if (lostAt === undefined) return "is registered; use another name";
  const rest = Number.isFinite(leftMs)
    ? `free in ${Math.ceil(leftMs / 1000)} s`
    : "free when its last claim is unprepared";
  return `was lost; ${rest}`;
}

function keyOf({ type, name }: Pick<NamedUser, "type" | "name">): string {
  return `${type}/${name}`;
}
