import { RuntimeNotFound } from "@nodekeeper/api/errors";
import { SharedWork, stopped } from "@nodekeeper/core/lib";
import { CriRuntime, type CriRuntimeOptions } from "./cri-runtime.ts";
import { findRuntimeEndpoint } from "./endpoint.ts";
import type { PodStats, PodStatsReader } from "./stats.ts";
import type { CallInFlight, Pod, PodStatus, Runtime, RuntimeHint, RuntimeVersion } from "./types.ts";

export interface FoundRuntimeOptions extends Omit<CriRuntimeOptions, "endpoint"> {
  /** Paths to probe. Default: the well-known sockets. */
  candidates?: readonly string[];
}

/**
 * A runtime without a configured endpoint. Probes the well-known sockets until one accepts connections, and
 * then keeps using it.
 */
export class FoundRuntime implements Runtime, PodStatsReader, Disposable {
  readonly #options: FoundRuntimeOptions;
  #found: CriRuntime | undefined;
  #closed = false;
  readonly #looking = new SharedWork(() => this.#look(), { outlivesCallers: true });

  constructor(options: FoundRuntimeOptions) {
    this.#options = options;
  }

  async version(signal: AbortSignal): Promise<RuntimeVersion> {
    return (await this.runtime()).version(signal);
  }

  async listPods(signal: AbortSignal): Promise<readonly Pod[]> {
    return (await this.runtime()).listPods(signal);
  }

  async listPod(uid: string, signal: AbortSignal): Promise<Pod | undefined> {
    return (await this.runtime()).listPod(uid, signal);
  }

  async podStatus(pod: Pod, signal: AbortSignal): Promise<PodStatus> {
    return (await this.runtime()).podStatus(pod, signal);
  }

  /** See `CriRuntime.stopContainer`. */
  async stopContainer(id: string, timeoutSeconds: number, signal: AbortSignal): Promise<void> {
    await (await this.runtime()).stopContainer(id, timeoutSeconds, signal);
  }

  async *hints(signal: AbortSignal): AsyncGenerator<RuntimeHint> {
    yield* (await this.runtime()).hints(signal);
  }

  async podStats(signal: AbortSignal): Promise<PodStats[]> {
    return await (await this.runtime()).podStats(signal);
  }

  /** See `CriRuntime.imageFilesystem`. */
  async imageFilesystem(signal: AbortSignal): Promise<string> {
    return await (await this.runtime()).imageFilesystem(signal);
  }

  /** See `CriRuntime.containerFilesystem`. */
  async containerFilesystem(signal: AbortSignal): Promise<string> {
    return await (await this.runtime()).containerFilesystem(signal);
  }

  connections(): number {
    return this.#found?.connections() ?? 0;
  }

  callsInFlight(): readonly CallInFlight[] {
    return this.#found?.callsInFlight() ?? [];
  }

  [Symbol.dispose](): void {
    this.#closed = true;
    this.#found?.[Symbol.dispose]();
  }

  /**
   * Returns the runtime that was found. Throws `unavailable` with the probe result of each path if there is
   * none.
   */
  async runtime(): Promise<CriRuntime> {
    return this.#found ?? (await this.#looking.join());
  }

  async #look(): Promise<CriRuntime> {
    const { candidates, ...options } = this.#options;
    const { path, lookedAt } = await findRuntimeEndpoint(options.clock, candidates);
    if (!path) {
      const places = lookedAt.map((place) => `${place.path} (${place.found})`).join(", ");
      throw new RuntimeNotFound({ places });
    }
    if (this.#closed) throw stopped("the runtime client was closed");
    options.log.info({ path }, "container runtime found");
    this.#found = new CriRuntime({ ...options, endpoint: path });
    return this.#found;
  }
}
