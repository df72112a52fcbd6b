import type { ImageFsInfoResponse } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { type Clock, codeOf, type Logger, NodekeeperError, quote, type Registry } from "@nodekeeper/core/lib";
import { Anomalies } from "./anomalies.ts";
import { RuntimeCalls } from "./calls.ts";
import { RuntimeConnection } from "./connection.ts";
import { parseRuntimeEndpoint } from "./endpoint.ts";
import { followHints } from "./hints.ts";
import { ListCalls } from "./list-calls.ts";
import { RuntimeLists } from "./lists.ts";
import { createRuntimeMetrics } from "./metrics.ts";
import { Owners } from "./owners.ts";
import { RuntimePods } from "./pods.ts";
import { completeRuntimeSettings, type RuntimeSettings } from "./settings.ts";
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
  /** Endpoint such as `unix:///run/containerd/containerd.sock`, or a path. */
  endpoint: string;
  clock: Clock;
  log: Logger;
  /** One runtime for each registry. */
  registry: Registry;
  /** What is not given is as the configuration has it by default. */
  settings?: Partial<RuntimeSettings>;
}

const apiVersion = "v1";

/** Client of a container runtime with CRI `runtime.v1` over a unix socket. Connects on the first call. Dispose it. */
export class CriRuntime implements Runtime, Disposable {
  /** Path of the socket. */
  readonly path: string;
  /** Resource usage of containers and pods. */
  readonly stats: RuntimeStats;
  readonly #connection: RuntimeConnection;
  readonly #listCalls: ListCalls;
  readonly #calls: RuntimeCalls;
  readonly #anomalies: Anomalies;
  readonly #owners: Owners;
  readonly #statuses: RuntimeStatuses;
  readonly #pods: RuntimePods;

  /** Throws `invalid` if the endpoint is not a unix socket. */
  constructor({ endpoint, clock, log, registry, ...options }: CriRuntimeOptions) {
    const settings = completeRuntimeSettings(options.settings);
    const metrics = createRuntimeMetrics(registry);
    this.path = parseRuntimeEndpoint(endpoint);
    this.#connection = new RuntimeConnection({
      path: this.path,
      maxReceiveBytes: settings.maxMessageBytes,
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
    this.#anomalies = new Anomalies(metrics, log);
    this.#owners = new Owners(settings.rememberedOwners);
    this.#statuses = new RuntimeStatuses(this.#calls, this.#anomalies, settings.statusConcurrency);
    this.#pods = new RuntimePods({
      lists: new RuntimeLists(this.#calls, this.#listCalls, this.#anomalies, settings),
      statuses: this.#statuses,
      owners: this.#owners,
      anomalies: this.#anomalies,
      settings,
      log,
    });
    this.stats = new CriStats(this.#calls, this.#anomalies);
  }

  /** Throws `unsupported` if the runtime has another CRI version. */
  async version(signal: AbortSignal): Promise<RuntimeVersion> {
    const { runtimeName, runtimeVersion, runtimeApiVersion } = await this.#calls.ask(
      { method: "Version" },
      signal,
      (client, callSignal) => client.version({ version: apiVersion }, { signal: callSignal }),
    );
    if (runtimeApiVersion !== apiVersion) {
      throw new NodekeeperError(
        "unsupported",
        `Version: runtime ${quote(runtimeName)} ${quote(runtimeVersion)} has CRI version ${quote(runtimeApiVersion)}; required: ${apiVersion}`,
        { id: "NK1405" },
      );
    }
    return { runtimeName, runtimeVersion, runtimeApiVersion };
  }

  /** The runtime's conditions. */
  async conditions(signal: AbortSignal): Promise<RuntimeCondition[]> {
    const { status } = await this.#calls.ask({ method: "Status" }, signal, (client, callSignal) =>
      client.status({ verbose: false }, { signal: callSignal }),
    );
    if (!status) throw new NodekeeperError("unavailable", "Status: the response has no status");
    return status.conditions;
  }

  /** Absolute path of the filesystem of images. Throws `unavailable` if the runtime does not report it. */
  async imageFilesystem(signal: AbortSignal): Promise<string> {
    const { imageFilesystems } = await this.#imageFsInfo(signal);
    const path = imageFilesystems[0]?.fsId?.mountpoint ?? "";
    if (path.startsWith("/")) return path;
    throw new NodekeeperError(
      "unavailable",
      "ImageFsInfo: the runtime reports no mount point of the image filesystem",
    );
  }

  /** Absolute path of the filesystem of writable layers: the image filesystem unless the runtime reports another one. */
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
    return this.#connection.made + this.#listCalls.made;
  }

  callsInFlight(): readonly CallInFlight[] {
    return this.#calls.inFlight();
  }

  /**
   * Stops a container. Succeeds if the container no longer exists. Throws as other calls do; `deadline` if there is no
   * response within the call deadline after the timeout.
   * @param timeoutSeconds whole seconds from SIGTERM to SIGKILL; 0 for immediate SIGKILL
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

  /** Closes the connection after calls in progress have ended. New calls fail with `stopped`. */
  [Symbol.dispose](): void {
    this.#connection[Symbol.dispose]();
    this.#listCalls[Symbol.dispose]();
  }
}
