import { existsSync } from "node:fs";
import { dirname } from "node:path";
import type { Clock, Logger } from "@nodekeeper/core/lib";
import type { RegistrationState } from "./services.ts";

const WARN_AFTER_SECONDS = 10;

export interface RegistrationWatchOptions {
  socketPath: string;
  /** The agent's last answer. */
  state: () => RegistrationState;
  clock: Clock;
  log: Logger;
}

/** Warns if the plugin is not registered 10 s after its socket was served, once for each time that it is served. */
export class RegistrationWatch {
  readonly #options: RegistrationWatchOptions;
  readonly #directory: string;
  #wasMissing: boolean;
  #timer: { cancel(): void } | undefined;
  #wasAsked = false;

  /** To be created before the socket is served, which creates a missing directory. */
  constructor(options: RegistrationWatchOptions) {
    this.#options = options;
    this.#directory = dirname(options.socketPath);
    this.#wasMissing = !existsSync(this.#directory);
  }

  /** The socket is served. */
  start(): void {
    this.stop();
    this.#wasAsked = false;
    this.#timer = this.#options.clock.after(WARN_AFTER_SECONDS * 1_000, () => this.#check());
  }

  /** The socket disappeared. To be called before it is served again, as the constructor. */
  lost(): void {
    this.#wasMissing = !existsSync(this.#directory);
  }

  /** The agent has asked for the plugin's name and type. */
  asked(): void {
    this.#wasAsked = true;
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #check(): void {
    const { socketPath, log } = this.#options;
    const reason = this.#reason();
    if (reason === undefined) return;
    const place = { directory: this.#directory, socket: socketPath };
    log.warn({ ...place, reason, errorId: "NK1319" }, `not registered after ${WARN_AFTER_SECONDS} s`);
  }

  #reason(): string | undefined {
    const answer = this.#options.state();
    if (answer.state === "registered") return undefined;
    if (answer.state === "refused") return `the agent refused the registration: ${answer.reason}`;
    if (this.#wasAsked) return "the agent called GetInfo and has not reported an outcome yet";
    if (this.#wasMissing)
      return "no agent called the socket: the directory was missing, so this plugin created it; no agent runs on this node, or it watches another directory";
    return "no agent called the socket: no agent runs on this node, it watches another directory (plugins.directories), or the socket's owner is not one that it accepts (plugins.allowedUids)";
  }
}
