import { RuntimeVersionUnsupported } from "@nodekeeper/api/errors";
import type { ImageFsInfoResponse } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { codeOf, NodekeeperError, quote, type Registry } from "@nodekeeper/core/lib";
import { Anomalies } from "./anomalies.ts";
import { RuntimeCalls } from "./calls.ts";
import { Connections, type ConnectionsOptions } from "./connections.ts";
import { followHints } from "./hints.ts";
import { RuntimeLists } from "./lists.ts";
import { createRuntimeMetrics } from "./metrics.ts";
import { Owners } from "./owners.ts";
import { RuntimePods } from "./pods.ts";
import { completeRuntimeSettings, type RuntimeSettings } from "./settings.ts";
import { type PodStats, type PodStatsReader, podStats } from "./stats.ts";
import { RuntimeStatuses } from "./statuses.ts";
import type { CallInFlight, Pod, PodStatus, Runtime, RuntimeHint, RuntimeVersion } from "./types.ts";

export interface CriRuntimeOptions extends Omit<ConnectionsOptions, "metrics" | "settings"> {
  /** Each registry accepts one runtime. */
  registry: Registry;
  /** Unset fields have the defaults of the configuration. */
  settings?: Partial<RuntimeSettings>;
}

const apiVersion = "v1";

/**
 * Client of a container runtime that implements CRI `runtime.v1` on a unix socket. Connects with the first
 * call, or looks for the endpoint if none is configured. Must be disposed of.
 */
export class CriRuntime implements Runtime, PodStatsReader, Disposable {
  readonly #connections: Connections;
  readonly #calls: RuntimeCalls;
  readonly #anomalies: Anomalies;
  readonly #owners: Owners;
  readonly #statuses: RuntimeStatuses;
  readonly #pods: RuntimePods;

  /** Throws `invalid` if the endpoint is not a unix socket. */
  constructor({ registry, ...options }: CriRuntimeOptions) {
    const { clock, log } = options;
    const settings = completeRuntimeSettings(options.settings);
    const metrics = createRuntimeMetrics(registry);
    this.#connections = new Connections({ ...options, metrics, settings });
    this.#calls = new RuntimeCalls({ connections: this.#connections, clock, metrics, settings });
    this.#anomalies = new Anomalies(metrics, log);
    this.#owners = new Owners(settings.rememberedOwners);
    this.#statuses = new RuntimeStatuses({ calls: this.#calls, anomalies: this.#anomalies, settings });
    this.#pods = new RuntimePods({
      lists: new RuntimeLists(this.#calls, this.#connections, this.#anomalies, settings),
      statuses: this.#statuses,
      owners: this.#owners,
      anomalies: this.#anomalies,
      settings,
      log,
    });
  }

  /** Throws `unsupported` if the runtime implements another version of CRI. */
  async version(signal: AbortSignal): Promise<RuntimeVersion> {
    const { runtimeName, runtimeVersion, runtimeApiVersion } = await this.#calls.ask(
      { method: "Version" },
      signal,
      (client, callSignal) => client.version({ version: apiVersion }, { signal: callSignal }),
    );
    if (runtimeApiVersion !== apiVersion) {
      throw new RuntimeVersionUnsupported({
        name: quote(runtimeName),
        version: quote(runtimeVersion),
        apiVersion: quote(runtimeApiVersion),
        required: apiVersion,
      });
    }
    return { runtimeName, runtimeVersion };
  }

  /** See `PodStatsReader`. */
  async podStats(signal: AbortSignal): Promise<PodStats[]> {
    const { stats } = await this.#calls.ask({ method: "ListPodSandboxStats" }, signal, (client, callSignal) =>
      client.listPodSandboxStats({}, { signal: callSignal }),
    );
    return stats.flatMap((one) => {
      const converted = podStats(one);
      if (!converted) this.#anomalies.report("statsWithoutAttributes", "");
      return converted ?? [];
    });
  }

  /**
   * Returns the absolute path of the image filesystem. Throws `unavailable` if the runtime does not report
   * it.
   */
  async imageFilesystem(signal: AbortSignal): Promise<string> {
    const { imageFilesystems } = await this.#imageFsInfo(signal);
    const path = imageFilesystems[0]?.fsId?.mountpoint ?? "";
    if (path.startsWith("/")) return path;
    throw new NodekeeperError(
      "unavailable",
      "ImageFsInfo: the runtime reports no mount point of the image filesystem",
    );
  }

  /**
   * Returns the absolute path of the filesystem of writable layers. This is the image filesystem unless the
   * runtime reports another one.
   */
  async containerFilesystem(signal: AbortSignal): Promise<string> {
    const { containerFilesystems } = await this.#imageFsInfo(signal);
    const path = containerFilesystems[0]?.fsId?.mountpoint ?? "";
    return path.startsWith("/") ? path : await this.imageFilesystem(signal);
  }

  #imageFsInfo(signal: AbortSignal): Promise<ImageFsInfoResponse> {
    return this.#calls.ask({ method: "ImageFsInfo" }, signal, (_client, callSignal, { calls }) =>
      calls.images.imageFsInfo({}, { signal: callSignal }),
    );
  }

  listPods(signal: AbortSignal): Promise<readonly Pod[]> {
    return this.#pods.all(signal);
  }

  listPod(uid: string, signal: AbortSignal): Promise<Pod | undefined> {
    return this.#pods.one(uid, signal);
  }

  podStatus(pod: Pod, signal: AbortSignal): Promise<PodStatus> {
    return this.#statuses.ofPod(pod, signal);
  }

  hints(signal: AbortSignal): AsyncIterable<RuntimeHint> {
    return followHints(this.#calls, this.#owners, this.#anomalies, signal);
  }

  connections(): number {
    const { calls, raw } = this.#connections.opened ?? {};
    return (calls?.made ?? 0) + (raw?.made ?? 0);
  }

  callsInFlight(): readonly CallInFlight[] {
    return this.#calls.inFlight();
  }

  /**
   * Stops a container. Succeeds if the container does not exist. Throws like other calls; `deadline` if the
   * runtime does not respond within the call deadline after the timeout.
   * @param timeoutSeconds whole seconds from SIGTERM to SIGKILL; 0 sends SIGKILL immediately
   */
  async stopContainer(id: string, timeoutSeconds: number, signal: AbortSignal): Promise<void> {
    if (!Number.isSafeInteger(timeoutSeconds) || timeoutSeconds < 0) {
      throw new NodekeeperError(
        "invalid",
        `StopContainer of ${id}: timeout ${timeoutSeconds} is not a whole number of seconds`,
      );
    }
    const waitsMs = timeoutSeconds * 1000;
    try {
      await this.#calls.ask({ method: "StopContainer", id, waitsMs }, signal, (client, callSignal) =>
        client.stopContainer({ containerId: id, timeout: BigInt(timeoutSeconds) }, { signal: callSignal }),
      );
    } catch (error) {
      if (codeOf(error) !== "notFound") throw error;
    }
  }

  /**
   * Closes the connections. List and status calls in progress fail; other calls in progress may still complete.
   * New calls fail with `stopped`.
   */
  [Symbol.dispose](): void {
    this.#connections[Symbol.dispose]();
  }
}
