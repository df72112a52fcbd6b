import { type Clock, type ProbeResult, probeSocket } from "@nodekeeper/core/lib";
import type { PluginMetrics } from "./metrics.ts";
import type { PluginRegistration } from "./types.ts";

/** Checks by connecting whether a plugin's process is running, since a socket file outlives its process. */
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

  /** Whether a process listens on the registration socket and on the endpoint. */
  async listening(registrationSocket: string, endpoint: string): Promise<boolean> {
    if ((await this.probe(registrationSocket)) !== "accepts") return false;
    return endpoint === registrationSocket || (await this.probe(endpoint)) === "accepts";
  }

  /** Why a registered plugin counts as disconnected; undefined if its sockets accept connections. */
  async loss({ registrationSocket, endpoint }: PluginRegistration): Promise<string | undefined> {
    // A missing registration socket is handled by the scan: it may be moved or re-created.
    if ((await this.probe(registrationSocket)) === "refused") {
      return "no process listens on its registration socket";
    }
    if (endpoint === registrationSocket) return undefined;
    const found = await this.probe(endpoint);
    if (found === "refused") return "no process listens on its endpoint";
    return found === "missing" ? "its endpoint does not exist" : undefined;
  }
}
