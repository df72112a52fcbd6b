import { PluginNameInUse, PluginNameReserved } from "@nodekeeper/api/errors";
import { abortable, quote } from "@nodekeeper/core/lib";
import type { PluginContext } from "./context.ts";
import type { PluginCandidate } from "./plugin-info.ts";
import type { PluginNames } from "./plugin-names.ts";
import type { PluginHandler, PluginRegistration } from "./types.ts";

/** A socket that requests or holds the registration of a name. */
export interface Claimant {
  /** Order in which the agent discovered the sockets. Higher is newer. */
  readonly sequence: number;
  /** Called when the socket owns the name, before the owner of the name can change again. */
  accepted(registration: PluginRegistration): void;
  /** Called when a newer socket has taken over the name. */
  superseded(by: PluginRegistration): void;
}

type Context = Pick<PluginContext, "log" | "metrics" | "onChange" | "vacancies"> & { names: PluginNames };

interface Owner {
  claimant: Claimant;
  handler: PluginHandler;
  registration: PluginRegistration;
}

/**
 * Decides which socket owns a plugin name of a type.
 *
 * A name belongs to one user at a time (`PluginNames`). Of all live sockets of that user with the same type
 * and name, the newest is the owner: the one that the agent discovered last. Among sockets found by the same
 * scan, it is the one whose file was created last, and then the one with the greater path.
 * 1. A newer socket replaces the owner without a gap: the handler receives the new registration and no
 *    deregistration. The replaced socket is `superseded`. Its process is not notified, as in the kubelet.
 * 2. A socket older than the owner (found when the agent starts) is refused, because another live plugin owns
 *    the name.
 * 3. When the owner disconnects, live superseded and refused sockets are retried, and the newest becomes the
 *    owner.
 * 4. Calls to a handler for one name do not overlap.
 */
export class RegisteredPlugins {
  readonly #context: Context;
  readonly #owners = new Map<string, Owner>();
  readonly #turns = new Map<string, Promise<unknown>>();
  #generation = 0;

  constructor(context: Context) {
    this.#context = context;
  }

  /**
   * Registers the candidate with the handler and makes the claimant the owner of the name (see
   * `Claimant.accepted`). Throws `conflict` (name taken), `forbidden` (name reserved or bound to another
   * user), `exhausted` (too many plugins), or the handler's error.
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
      const giveBack = this.#admit(claimant, candidate, handler);
      const registration = { ...candidate, generation: ++this.#generation };
      try {
        await handler.register(registration, signal);
      } catch (error) {
        giveBack();
        throw error;
      }
      const previous = this.#owners.get(key);
      this.#owners.set(key, { claimant, handler, registration });
      if (previous && previous.claimant !== claimant) previous.claimant.superseded(registration);
      // The claimant stopped waiting and the handler ignored its signal, so no session manages this
      // registration.
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
    const { log, metrics, names, onChange, vacancies } = this.#context;
    const { type, name } = owner.registration;
    try {
      owner.handler.deregister(owner.registration, reason);
    } catch (error) {
      log.error({ err: error, plugin: name }, "plugin handler failed to deregister");
    }
    metrics.deregistrations.inc({ type, reason });
    log.info({ type, plugin: name, reason }, "plugin deregistered");
    onChange({ kind: "lost", type, name, reason });
    names.leave(owner.registration);
    vacancies.announce();
  }

  // Returns a function that releases the name again.
  #admit(claimant: Claimant, candidate: PluginCandidate, handler: PluginHandler): () => void {
    const { type, name } = candidate;
    if (isReserved(name, handler.inTreeNames)) {
      throw new PluginNameReserved({ type, name: quote(name) });
    }
    const owner = this.#owners.get(keyOf(candidate));
    if (owner && owner.registration.uid === candidate.uid && owner.claimant.sequence > claimant.sequence) {
      throw new PluginNameInUse({ type, name: quote(name), socket: owner.registration.registrationSocket });
    }
    return this.#context.names.take(candidate);
  }

  // One promise chain per name. A handler call that never settles blocks only its own name.
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

// A name that differs only in case could be mistaken for that of the in-tree plugin.
function isReserved(name: string, reserved: ReadonlySet<string> = new Set()): boolean {
  return [...reserved].some((each) => each.toLowerCase() === name.toLowerCase());
}

function keyOf({ type, name }: Pick<PluginRegistration, "type" | "name">): string {
  return `${type}/${name}`;
}
