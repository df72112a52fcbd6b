import { type Clock, type ProbeResult, probeSocket } from "@nodekeeper/core/lib";
import type { PluginMetrics } from "./metrics.ts";
import type { PluginRegistration } from "./types.ts";

/** Finds out by bare connects whether a plugin's process is there: a socket file outlives its process. */
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

  /** Whether somebody listens on the registration socket and on the endpoint. */
  async listening(registrationSocket: string, endpoint: string): Promise<boolean> {
    if ((await this.probe(registrationSocket)) !== "accepts") return false;
    return endpoint === registrationSocket || (await this.probe(endpoint)) === "accepts";
  }

  /** Why the process of a registered plugin counts as gone, or undefined. */
  async loss({ registrationSocket, endpoint }: PluginRegistration): Promise<string | undefined> {
    // A missing registration socket is the scan's to judge: it may just be moved or re-created.
    if ((await this.probe(registrationSocket)) === "refused") {
      return "no process listens on its registration socket";
    }
    if (endpoint === registrationSocket) return undefined;
    const found = await this.probe(endpoint);
    if (found === "refused") return "no process listens on its endpoint";
    return found === "missing" ? "its endpoint is missing" : undefined;
  }
}
