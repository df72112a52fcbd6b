import { type Clock, type ProbeResult, probeSocket } from "@nodekeeper/core/lib";
import type { PluginMetrics } from "./metrics.ts";
import type { PluginRegistration } from "./types.ts";

/**
 * Checks by connecting whether a plugin's process is running, because a socket file can outlive its process.
 */
export class Liveness {
  readonly #clock: Clock;
  readonly #metrics: PluginMetrics;

  constructor(clock: Clock, metrics: PluginMetrics) {
    this.#clock = clock;
    this.#metrics = metrics;
  }

  async probe(path: string): Promise<ProbeResult> {
    const found = await probeSocket(this.#clock, path);
    if (found !== "accepts") this.#metrics.probeFailures.inc({ result: found });
    return found;
  }

  /** Returns whether a process is listening on the registration socket and on the endpoint. */
  async listening(registrationSocket: string, endpoint: string): Promise<boolean> {
    if ((await this.probe(registrationSocket)) !== "accepts") return false;
    return endpoint === registrationSocket || (await this.probe(endpoint)) === "accepts";
  }

  /** Returns why a registered plugin counts as disconnected. Undefined if its sockets accept connections. */
  async loss({ registrationSocket, endpoint }: PluginRegistration): Promise<string | undefined> {
    // The scan handles a missing registration socket: it may be moved or re-created.
    if ((await this.probe(registrationSocket)) === "refused") {
      return "no process listens on its registration socket";
    }
    if (endpoint === registrationSocket) return undefined;
    const found = await this.probe(endpoint);
    if (found === "refused") return "no process listens on its endpoint";
    return found === "missing" ? "its endpoint does not exist" : undefined;
  }
}
