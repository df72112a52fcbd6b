import { abortable, type Logger, NodekeeperError, quote } from "@nodekeeper/core/lib";
import type { PluginCandidate } from "./plugin-info.ts";
import type { PluginHandler, PluginRegistration } from "./types.ts";

/** A socket that requests or holds the registration of a name. */
export interface Claimant {
  /** Order in which the agent discovered the sockets; higher is newer. */
  readonly sequence: number;
  /** Called when it owns the name, before any further change to the name's owner. */
  accepted(registration: PluginRegistration): void;
  /** Called when a newer socket has taken over the name. */
  superseded(by: PluginRegistration): void;
}

interface Owner {
  claimant: Claimant;
  handler: PluginHandler;
  registration: PluginRegistration;
}

export interface RegisteredPluginsOptions {
  log: Logger;
  /** Names of a type that are reserved for in-tree plugins. */
  reservedNames(type: string): ReadonlySet<string>;
  maxPlugins: number;
  /** Called when a name, or capacity below the limit, became free. */
  onVacancy(): void;
  onDeregistered(registration: PluginRegistration, reason: string): void;
}

/**
 * Decides which socket owns a plugin name of a type.
 *
 * Of all live sockets with the same type and name, the newest is the owner: the one that the agent discovered last; among
 * sockets found by the same scan, the one whose file was created last, then the one with the greater path.
 * 1. A newer socket replaces the owner without a gap: the handler gets the new registration, and no deregistration. The
 *    replaced socket is `superseded`; its process is not notified, as with the kubelet.
 * 2. A socket older than the owner (found when the agent starts) is refused: another live plugin owns the name.
 * 3. When the owner disconnects, live superseded and refused sockets are tried again, and the newest becomes the owner.
 * 4. Calls of a handler for one name do not overlap.
 */
export class RegisteredPlugins {
  readonly #options: RegisteredPluginsOptions;
  readonly #owners = new Map<string, Owner>();
  /** Names whose first registration is in progress; they count towards the limit. */
  readonly #arriving = new Set<string>();
  readonly #turns = new Map<string, Promise<unknown>>();
  #generation = 0;

  constructor(options: RegisteredPluginsOptions) {
    this.#options = options;
  }

  /**
   * Registers the candidate with the handler and makes the claimant its owner (see `Claimant.accepted`). Throws
   * `conflict` (name taken), `forbidden` (name reserved), `exhausted` (too many plugins), or the handler's error.
   */
  async register(
    claimant: Claimant,
    candidate: PluginCandidate,
    handler: PluginHandler,
    signal: AbortSignal,
  ): Promise<void> {
    const key = keyOf(candidate);
    const turn = this.#inTurn(key, async () => {
      signal.throwIfAborted();
      this.#admit(key, claimant, candidate);
      const registration = { ...candidate, generation: ++this.#generation };
      this.#arriving.add(key);
      try {
        await handler.register(registration, signal);
      } finally {
        this.#arriving.delete(key);
      }
      const previous = this.#owners.get(key);
      this.#owners.set(key, { claimant, handler, registration });
      if (previous && previous.claimant !== claimant) previous.claimant.superseded(registration);
      // The claimant stopped waiting and the handler ignored its signal, so no session manages this registration.
      if (signal.aborted) this.#drop(key, "registration was abandoned");
      else claimant.accepted(registration);
    });
    await abortable(turn, signal);
  }

  /** Ends the registration if it still owns its name, after earlier calls for the name. Never rejects. */
  async release(registration: PluginRegistration, reason: string): Promise<void> {
    const key = keyOf(registration);
    await this.#inTurn(key, async () => {
      if (this.#owners.get(key)?.registration.generation === registration.generation) this.#drop(key, reason);
    });
  }

  #drop(key: string, reason: string): void {
    const owner = this.#owners.get(key);
    if (!owner) return;
    this.#owners.delete(key);
    try {
      owner.handler.deregister(owner.registration, reason);
    } catch (error) {
      this.#options.log.error(
        { err: error, plugin: owner.registration.name },
        "plugin handler failed to deregister",
      );
    }
    this.#options.onDeregistered(owner.registration, reason);
    this.#options.onVacancy();
  }

  #admit(key: string, claimant: Claimant, candidate: PluginCandidate): void {
    const { type, name } = candidate;
    if (this.#options.reservedNames(type).has(name)) {
      throw new NodekeeperError(
        "forbidden",
        `the ${type} name ${quote(name)} is reserved for an in-tree plugin; use another name`,
        { id: "NK1304" },
      );
    }
    const owner = this.#owners.get(key);
    if (owner && owner.claimant.sequence > claimant.sequence) {
      throw new NodekeeperError(
        "conflict",
        `another live plugin owns the ${type} name ${quote(name)}: ${owner.registration.registrationSocket} is newer; ` +
          "use another name or stop the other plugin",
        { id: "NK1303" },
      );
    }
    const places = this.#owners.size + this.#arriving.size;
    if (!owner && places >= this.#options.maxPlugins) {
      throw new NodekeeperError(
        "exhausted",
        `too many plugins: the limit plugins.maxPlugins (${this.#options.maxPlugins}) is reached`,
        { id: "NK1305" },
      );
    }
  }

  // One promise chain for each name. A handler call that never settles blocks only its own name.
  #inTurn<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(key) ?? Promise.resolve();
    const turn = before.then(work, work);
    const settled = turn.then(
      () => {},
      () => {},
    );
    this.#turns.set(key, settled);
    settled.then(() => {
      if (this.#turns.get(key) === settled) this.#turns.delete(key);
    });
    return turn;
  }
}

function keyOf({ type, name }: Pick<PluginRegistration, "type" | "name">): string {
  return `${type}/${name}`;
}
