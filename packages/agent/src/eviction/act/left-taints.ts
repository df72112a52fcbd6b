import type { Logger } from "@nodekeeper/core/lib";

export interface LeftTaintsOptions {
  log: Logger;
  /** Fields of the log line that name the object. */
  object: Readonly<Record<string, string>>;
  /** Returns the command that removes the taints. */
  command: (taints: readonly string[]) => string;
}

/** Warns of the agent's taints of one object that stay because nothing is written in dry run. */
export class LeftTaints {
  readonly #options: LeftTaintsOptions;
  /** The taints that were last warned of. */
  #reported = "";

  constructor(options: LeftTaintsOptions) {
    this.#options = options;
  }

  /** Forgets the last warning, so that the next dry run logs it again. Call when dry run ends. */
  reset(): void {
    this.#reported = "";
  }

  /** Warns once for the same taints. */
  warn(own: Iterable<string>): void {
    const taints = [...own].sort();
    const text = taints.join(" ");
    if (text === this.#reported) return;
    this.#reported = text;
    if (taints.length === 0) return;
    const { log, object, command } = this.#options;
    const remedy = `enable eviction, or run: ${command(taints)}`;
    log.warn({ ...object, taints, remedy }, "dry run leaves taints that this agent added before");
  }
}
