import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { PluginNotRegistered } from "@nodekeeper/api/errors";
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

/** Warns if the plugin is not registered 10 s after its socket is served, once each time it is served. */
export class RegistrationWatch {
  readonly #options: RegistrationWatchOptions;
  readonly #directory: string;
  #wasMissing: boolean;
  #timer: { cancel(): void } | undefined;
  #wasAsked = false;

  /** Call before the socket is served, because serving it creates a missing directory. */
  constructor(options: RegistrationWatchOptions) {
    this.#options = options;
    this.#directory = dirname(options.socketPath);
    this.#wasMissing = !existsSync(this.#directory);
  }

  /** Call when the socket is served. */
  start(): void {
    this.stop();
    this.#wasAsked = false;
    this.#timer = this.#options.clock.after(WARN_AFTER_SECONDS * 1_000, () => this.#check());
  }

  /** Call when the socket disappears, before it is served again. */
  lost(): void {
    this.#wasMissing = !existsSync(this.#directory);
  }

  /** Call when the agent has called GetInfo. */
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
    log.warn(
      { ...place, reason, errorId: PluginNotRegistered.id },
      `not registered after ${WARN_AFTER_SECONDS} s`,
    );
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
