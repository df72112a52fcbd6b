import type { PluginRegistration } from "./types.ts";

/**
 * The session of an earlier file at the same path. Its registration is kept until the new file's first
 * attempt ends.
 */
export interface Predecessor {
  session: { readonly held: readonly PluginRegistration[] };
  finished: Promise<void>;
}

/** The registrations that earlier files at a session's path have left. */
export class Inheritance {
  #predecessor: Predecessor | undefined;
  #left: readonly PluginRegistration[] = [];

  constructor(predecessor: Predecessor | undefined) {
    this.#predecessor = predecessor;
  }

  /** Returns the session's own registration, and those of earlier files under other names. */
  with(own: PluginRegistration | undefined): readonly PluginRegistration[] {
    if (!own) return this.#left;
    return [own, ...this.#left.filter(({ type, name }) => type !== own.type || name !== own.name)];
  }

  /**
   * Waits until the predecessor has ended. Drops the reference to it, so that a socket that is re-created
   * repeatedly does not retain all its predecessors.
   */
  async collect(): Promise<void> {
    if (!this.#predecessor) return;
    const { session, finished } = this.#predecessor;
    await finished;
    this.#left = session.held;
    this.#predecessor = undefined;
  }

  /** Returns the registrations that are left and forgets them. */
  take(): readonly PluginRegistration[] {
    const left = this.#left;
    this.#left = [];
    return left;
  }
}
