import { GracePeriodCut, PluginNameBound, PluginNameOwned } from "@nodekeeper/api/errors";
import { messageOf, quote } from "@nodekeeper/core/lib";
import type { PluginContext, PluginSettings } from "./context.ts";
import type { PluginCandidate } from "./plugin-info.ts";
import { type HeldName, type NamedUser, Shares } from "./shares.ts";
import type { PluginRegistration } from "./types.ts";

/** Persists the users of names across restarts of the agent. */
export interface PluginNameStore {
  names(): NamedUser[];
  save(named: NamedUser): void;
  remove(named: Pick<NamedUser, "type" | "name">): void;
}

type Context = Omit<PluginContext, "settings"> & {
  store: PluginNameStore;
  settings: Pick<PluginSettings, "directories" | "maxPlugins" | "nameOwners" | "returnMs">;
};

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
  readonly #context: Context;
  /** User IDs that the configuration binds names to, by lowercase name. */
  readonly #bound: ReadonlyMap<string, number>;
  readonly #shares: Shares;
  readonly #held = new Map<string, HeldName>();

  constructor(context: Context) {
    this.#context = context;
    this.#bound = new Map(context.settings.nameOwners.map(nameAndUser));
    this.#shares = new Shares(context.settings);
    for (const { type, name, uid } of context.store.names()) {
      const held = { type, name, uid, directory: undefined, lostAt: 0, notBefore: 0, timer: undefined };
      this.#held.set(keyOf(held), held);
    }
  }

  /** Starts the grace period of names that were registered when the agent stopped. */
  start(): void {
    const { clock, settings } = this.#context;
    const now = clock.monotonic();
    for (const held of this.#held.values()) {
      if (held.lostAt === undefined) continue;
      held.lostAt = now;
      held.notBefore = now + (settings.returnMs ?? 10_000);
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
    held.lostAt = this.#context.clock.monotonic();
    this.#arm(held);
    for (const displaced of this.#shares.displaced(held, this.#held.values(), (each) =>
      this.#isEndless(each),
    ))
      this.#displace(displaced);
  }

  #checkUser({ type, name, uid }: PluginCandidate): void {
    const { clock } = this.#context;
    const owner = this.#bound.get(name.toLowerCase());
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
    return Math.max(lostAt + (this.#context.handlers.get(type)?.holdMs(name) ?? 0), notBefore);
  }

  #isEndless(held: HeldName): boolean {
    return this.#heldUntil(held) === Number.POSITIVE_INFINITY;
  }

  #arm(held: HeldName): void {
    const { clock, vacancies } = this.#context;
    held.timer?.cancel();
    const leftMs = this.#heldUntil(held) - clock.monotonic();
    held.timer = clock.after(Math.min(Math.max(leftMs, 0), RECHECK_MS), () => {
      if (this.#heldUntil(held) > clock.monotonic()) return this.#arm(held);
      this.#forget(held);
      vacancies.announce();
    });
  }

  #displace(held: HeldName): void {
    const { handlers, metrics, log, onChange } = this.#context;
    const { type, name, uid } = held;
    const errorId = GracePeriodCut.id;
    const reason = this.#shares.reason(held);
    this.#forget(held);
    handlers.get(type)?.forget(name, reason);
    metrics.displaced.inc({ type });
    log.warn({ errorId, type, plugin: name, uid, reason }, "grace period of a lost plugin ended early");
    onChange({ kind: "displaced", type, name, uid, errorId, reason });
  }

  #forget(held: HeldName): void {
    held.timer?.cancel();
    this.#held.delete(keyOf(held));
    this.#store("remove", held);
  }

  // A name that cannot be stored is held until the agent restarts.
  #store(operation: "save" | "remove", held: HeldName): void {
    try {
      this.#context.store[operation](held);
    } catch (error) {
      const { type, name } = held;
      const fields = { type, plugin: name, reason: messageOf(error) };
      this.#context.log.warn(fields, "failed to store the user of a plugin's name");
    }
  }
}

// Parses "gpu.example.com=65532". Bindings ignore the case of names.
function nameAndUser(setting: string): [name: string, uid: number] {
  const [name = "", uid] = setting.split("=");
  return [name.toLowerCase(), Number(uid)];
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
