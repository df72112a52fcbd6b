import { abortable, type Logger, NodekeeperError, quote } from "@nodekeeper/core/lib";
import type { PluginCandidate } from "./plugin-info.ts";
import type { PluginHandler, PluginRegistration } from "./types.ts";

/** A socket that wants, or has, a registration. */
export interface Claimant {
  /** Order in which sockets appeared to the agent: the higher is the newer. */
  readonly sequence: number;
  /** It owns the name now. Called before anything else can happen to the name. */
  accepted(registration: PluginRegistration): void;
  /** A newer socket took the name over. */
  superseded(by: PluginRegistration): void;
}

interface Owner {
  claimant: Claimant;
  handler: PluginHandler;
  registration: PluginRegistration;
}

export interface RegisteredPluginsOptions {
  log: Logger;
  /** Names of a type that in-tree plugins own. */
  reservedNames(type: string): ReadonlySet<string>;
  maxPlugins: number;
  /** A name or a place became free. */
  onVacancy(): void;
  onDeregistered(registration: PluginRegistration, reason: string): void;
}

/**
 * Which socket owns which plugin name of which type.
 *
 * The rule: of all live sockets that present the same type and name, the newest owns it. Newest is the one that
 * appeared last to the agent; among sockets found by the same scan, the one whose file was made last, then the
 * one with the greater path.
 * - A newer socket replaces the owner without a gap: the handler gets the new registration, and no deregistration.
 *   The replaced socket is `superseded`; its process is not told, as with the kubelet.
 * - A socket older than the owner (met when the agent starts) is refused: another live plugin owns the name.
 * - When the owner goes, superseded and refused sockets that still live are tried again, and the newest wins again.
 *
 * Calls of a handler for one name run one after the other.
 */
export class RegisteredPlugins {
  readonly #options: RegisteredPluginsOptions;
  readonly #owners = new Map<string, Owner>();
  /** Names that a handler is registering for the first time; they count towards the limit. */
  readonly #arriving = new Set<string>();
  readonly #turns = new Map<string, Promise<unknown>>();
  #generation = 0;

  constructor(options: RegisteredPluginsOptions) {
    this.#options = options;
  }

  /**
   * Registers the candidate with the handler and makes the claimant its owner (see `Claimant.accepted`).
   * Throws `conflict` (name taken), `forbidden` (name reserved), `exhausted` (too many plugins), or what the handler throws.
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
      // The claimant gave up waiting while the handler ignored its signal: nobody would look after this one.
      if (signal.aborted) this.#drop(key, "registration was abandoned");
      else claimant.accepted(registration);
    });
    await abortable(turn, signal);
  }

  /** Ends the registration if it still owns its name. Waits for its turn; never rejects. */
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
        `the ${type} name ${quote(name)} is owned by an in-tree plugin; choose another`,
      );
    }
    const owner = this.#owners.get(key);
    if (owner && owner.claimant.sequence > claimant.sequence) {
      throw new NodekeeperError(
        "conflict",
        `another live plugin owns the ${type} name ${quote(name)}: ${owner.registration.registrationSocket} is newer; ` +
          "choose another name or stop the other plugin",
      );
    }
    const places = this.#owners.size + this.#arriving.size;
    if (!owner && places >= this.#options.maxPlugins) {
      throw new NodekeeperError(
        "exhausted",
        `too many plugins: ${this.#options.maxPlugins} are registered, the limit`,
      );
    }
  }

  // One promise chain for each name. A handler that never settles holds up its own name only.
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
