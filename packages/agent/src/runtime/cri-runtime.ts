import type { ImageFsInfoResponse } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { type Clock, codeOf, type Logger, NodekeeperError, quote, type Registry } from "@nodekeeper/core/lib";
import { RuntimeCalls } from "./calls.ts";
import { RuntimeConnection } from "./connection.ts";
import { parseRuntimeEndpoint } from "./endpoint.ts";
import { followHints } from "./hints.ts";
import { ListCalls } from "./list-calls.ts";
import { RuntimeLists } from "./lists.ts";
import { createRuntimeMetrics } from "./metrics.ts";
import { Oddities } from "./oddities.ts";
import { Owners } from "./owners.ts";
import { RuntimePods } from "./pods.ts";
import { defaultRuntimeSettings, type RuntimeSettings } from "./settings.ts";
import { CriStats, type RuntimeStats } from "./stats-reader.ts";
import { RuntimeStatuses } from "./statuses.ts";
import type {
  CallInFlight,
  Pod,
  PodStatus,
  Runtime,
  RuntimeCondition,
  RuntimeHint,
  RuntimeVersion,
} from "./types.ts";

export interface CriRuntimeOptions {
  /** `unix:///run/containerd/containerd.sock`, or the path alone. */
  endpoint: string;
  clock: Clock;
  log: Logger;
  /** One runtime for each registry. */
  registry: Registry;
  settings?: Partial<RuntimeSettings>;
}

const apiVersion = "v1";

/** A container runtime that speaks CRI `runtime.v1` over a unix socket. It connects with the first call; dispose it. */
export class CriRuntime implements Runtime, Disposable {
  /** The socket. */
  readonly path: string;
  /** What containers and pods use. */
  readonly stats: RuntimeStats;
  readonly #connection: RuntimeConnection;
  readonly #listCalls: ListCalls;
  readonly #calls: RuntimeCalls;
  readonly #oddities: Oddities;
  readonly #owners: Owners;
  readonly #statuses: RuntimeStatuses;
  readonly #pods: RuntimePods;

  /** Throws `invalid` where the endpoint names no socket. */
  constructor({ endpoint, clock, log, registry, ...options }: CriRuntimeOptions) {
    const settings = { ...defaultRuntimeSettings, ...options.settings };
    const metrics = createRuntimeMetrics(registry);
    this.path = parseRuntimeEndpoint(endpoint);
    this.#connection = new RuntimeConnection({
      path: this.path,
      maxReceiveBytes: settings.maxReceiveBytes,
      connectDeadlineMs: settings.connectDeadlineMs,
      clock,
      onConnected: () => {
        metrics.connections.inc();
        log.info({ path: this.path }, "connected to the container runtime");
      },
    });
    this.#listCalls = new ListCalls({
      path: this.path,
      connectDeadlineMs: settings.connectDeadlineMs,
      clock,
      onConnected: () => metrics.connections.inc(),
    });
    this.#calls = new RuntimeCalls({ connection: this.#connection, clock, metrics, settings });
    this.#oddities = new Oddities(metrics, log);
    this.#owners = new Owners(settings.rememberedOwners);
    this.#statuses = new RuntimeStatuses(this.#calls, this.#oddities, settings.statusConcurrency);
    this.#pods = new RuntimePods({
      lists: new RuntimeLists(this.#calls, this.#listCalls, this.#oddities, settings),
      statuses: this.#statuses,
      owners: this.#owners,
      oddities: this.#oddities,
      settings,
      log,
    });
    this.stats = new CriStats(this.#calls, this.#oddities);
  }

  /** Throws `unsupported` where the runtime speaks another version of CRI. */
  async version(signal: AbortSignal): Promise<RuntimeVersion> {
    const { runtimeName, runtimeVersion, runtimeApiVersion } = await this.#calls.ask(
      { method: "Version" },
      signal,
      (client, callSignal) => client.version({ version: apiVersion }, { signal: callSignal }),
    );
    if (runtimeApiVersion !== apiVersion) {
      throw new NodekeeperError(
        "unsupported",
        `Version: runtime ${quote(runtimeName)} ${quote(runtimeVersion)} speaks CRI ${quote(runtimeApiVersion)}, not ${apiVersion}`,
      );
    }
    return { runtimeName, runtimeVersion, runtimeApiVersion };
  }

  /** What the runtime says about itself. */
  async conditions(signal: AbortSignal): Promise<RuntimeCondition[]> {
    const { status } = await this.#calls.ask({ method: "Status" }, signal, (client, callSignal) =>
      client.status({ verbose: false }, { signal: callSignal }),
    );
    if (!status) throw new NodekeeperError("unavailable", "Status: the answer has no status");
    return status.conditions;
  }

  /** Where the runtime keeps images: an absolute path. Throws `unavailable` where it does not say. */
  async imageFilesystem(signal: AbortSignal): Promise<string> {
    const { imageFilesystems } = await this.#imageFsInfo(signal);
    const path = imageFilesystems[0]?.fsId?.mountpoint ?? "";
    if (path.startsWith("/")) return path;
    throw new NodekeeperError("unavailable", "ImageFsInfo: the runtime names no place of images");
  }

  /** Where the runtime keeps writable layers: with the images where it names no other place. */
  async containerFilesystem(signal: AbortSignal): Promise<string> {
    const { containerFilesystems } = await this.#imageFsInfo(signal);
    const path = containerFilesystems[0]?.fsId?.mountpoint ?? "";
    return path.startsWith("/") ? path : await this.imageFilesystem(signal);
  }

  #imageFsInfo(signal: AbortSignal): Promise<ImageFsInfoResponse> {
    return this.#calls.ask({ method: "ImageFsInfo" }, signal, (_client, callSignal) =>
      this.#connection.images.imageFsInfo({}, { signal: callSignal }),
    );
  }

  listPods(signal: AbortSignal): Promise<Pod[]> {
    return this.#pods.all(signal);
  }

  listPod(uid: string, signal: AbortSignal): Promise<Pod | undefined> {
    return this.#pods.one(uid, signal);
  }

  podStatus(pod: Pod, signal: AbortSignal): Promise<PodStatus> {
    return this.#statuses.ofPod(pod, signal);
  }

  hints(signal: AbortSignal): AsyncIterable<RuntimeHint> {
    return followHints(this.#calls, this.#owners, this.#oddities, signal);
  }

  connections(): number {
    return this.#connection.made + this.#listCalls.made;
  }

  callsInFlight(): readonly CallInFlight[] {
    return this.#calls.inFlight();
  }

  /**
   * Stops a container; one that is gone is stopped. Throws as all calls do, `deadline` the usual time after the timeout.
   * @param timeoutSeconds whole seconds from SIGTERM to SIGKILL; 0: killed at once
   */
  async stopContainer(id: string, timeoutSeconds: number, signal: AbortSignal): Promise<void> {
    if (!Number.isSafeInteger(timeoutSeconds) || timeoutSeconds < 0) {
      throw new NodekeeperError(
        "invalid",
        `StopContainer of ${id}: timeout ${timeoutSeconds} is no whole seconds`,
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

  /** Takes no more calls, which fail as `stopped`, and closes the connection when those in flight are over. */
  [Symbol.dispose](): void {
    this.#connection[Symbol.dispose]();
    this.#listCalls[Symbol.dispose]();
  }
}
