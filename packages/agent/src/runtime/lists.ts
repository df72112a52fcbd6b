import {
  type Container,
  ContainerState,
  ListContainersRequest,
  ListPodSandboxRequest,
  type PodSandbox,
  PodSandboxState,
} from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { codeOf } from "@nodekeeper/core/lib";
import type { Anomalies } from "./anomalies.ts";
import type { RuntimeCalls } from "./calls.ts";
import type { Connections } from "./connections.ts";
import { KnownItems } from "./known-items.ts";
import { readContainer, readSandbox } from "./list-decoding.ts";
import { ListItems } from "./list-items.ts";
import { bothAtOnce, mapInParallel } from "./parallel.ts";
import type { RuntimeSettings } from "./settings.ts";

/** Selects the pods to list; all if empty. */
export interface ListFilter {
  /** UID of the pod, as in the label io.kubernetes.pod.uid. */
  podUid?: string;
  sandboxId?: string;
}

export interface Listed {
  sandboxes: readonly PodSandbox[];
  containers: readonly Container[];
}

// Tags of the last decoded fields: the field number times 8.
const CREATED_AT_OF_SANDBOX = 32;
const CREATED_AT_OF_CONTAINER = 56;
// States only advance in this order, so an item whose state changes between two partial lists is in at least
// one of them.
const sandboxStates = [PodSandboxState.SANDBOX_READY, PodSandboxState.SANDBOX_NOTREADY];
const containerStates = [
  ContainerState.CONTAINER_CREATED,
  ContainerState.CONTAINER_RUNNING,
  ContainerState.CONTAINER_EXITED,
  ContainerState.CONTAINER_UNKNOWN,
];
const PARTS_AT_ONCE = 4;
// Complete lists are retried once the number of items has fallen to this share of the number at which they
// failed.
const RETRY_SHARE = 0.7;
const podUidLabel = "io.kubernetes.pod.uid";

/** Lists sandboxes and containers concurrently, using streaming lists if the runtime supports them. */
export class RuntimeLists {
  readonly #calls: RuntimeCalls;
  readonly #connections: Connections;
  readonly #settings: RuntimeSettings;
  readonly #sandboxes = new KnownItems(readSandbox, CREATED_AT_OF_SANDBOX);
  readonly #containers = new KnownItems(readContainer, CREATED_AT_OF_CONTAINER);
  readonly #anomalies: Anomalies;
  // The connection on which the runtime did not implement streaming lists.
  #withoutStreams: number | undefined;
  // Number of sandboxes and containers when a complete list was too large. Undefined while complete lists
  // succeed.
  #tooMany: number | undefined;

  constructor(
    calls: RuntimeCalls,
    connections: Connections,
    anomalies: Anomalies,
    settings: RuntimeSettings,
  ) {
    this.#calls = calls;
    this.#connections = connections;
    this.#anomalies = anomalies;
    this.#settings = settings;
  }

  /**
   * Lists the matching sandboxes and containers. Uses partial lists if a complete list exceeds the size limit
   * of the runtime or the client. Throws like other calls; `exhausted` if a partial or streamed list is too
   * large.
   */
  async list(filter: ListFilter, signal: AbortSignal): Promise<Listed> {
    if (this.#withoutStreams === undefined || this.#withoutStreams !== this.#made) {
      try {
        return await this.#both("StreamPodSandboxes", "StreamContainers", filter, signal);
      } catch (error) {
        if (signal.aborted || codeOf(error) !== "unsupported") throw error;
        this.#withoutStreams = this.#made;
      }
    }
    const isWhole = filter.podUid === undefined && filter.sandboxId === undefined;
    if (isWhole && this.#tooMany !== undefined) return await this.#inParts(signal);
    try {
      return await this.#both("ListPodSandbox", "ListContainers", filter, signal);
    } catch (error) {
      if (signal.aborted || codeOf(error) !== "exhausted" || !isWhole) throw error;
      this.#anomalies.report("listTooLarge", "");
      return await this.#inParts(signal);
    }
  }

  get #made(): number | undefined {
    return this.#connections.opened?.raw.made;
  }

  // Lists by state. If a state still has too many containers, lists them by sandbox.
  async #inParts(signal: AbortSignal): Promise<Listed> {
    const sandboxes = new Map<string, PodSandbox>();
    for (const state of sandboxStates) {
      const request = ListPodSandboxRequest.fromPartial({ filter: { state: { state } } });
      const bytes = ListPodSandboxRequest.encode(request).finish();
      const part = await this.#items("ListPodSandbox", bytes, this.#sandboxes, signal);
      for (const sandbox of part) sandboxes.set(sandbox.id, sandbox);
    }
    const containers = new Map<string, Container>();
    for (const state of containerStates) {
      const part = await this.#containersIn(state, [...sandboxes.keys()], signal);
      for (const container of part) containers.set(container.id, container);
    }
    this.#sandboxes.listed();
    this.#containers.listed();
    const count = sandboxes.size + containers.size;
    this.#tooMany ??= count;
    if (count < this.#tooMany * RETRY_SHARE) this.#tooMany = undefined;
    return { sandboxes: [...sandboxes.values()], containers: [...containers.values()] };
  }

  async #containersIn(
    state: ContainerState,
    sandboxIds: readonly string[],
    signal: AbortSignal,
  ): Promise<Container[]> {
    const list = (podSandboxId: string, scope: AbortSignal) => {
      const request = ListContainersRequest.fromPartial({ filter: { podSandboxId, state: { state } } });
      const bytes = ListContainersRequest.encode(request).finish();
      return this.#items("ListContainers", bytes, this.#containers, scope);
    };
    try {
      return await list("", signal);
    } catch (error) {
      if (signal.aborted || codeOf(error) !== "exhausted" || sandboxIds.length === 0) throw error;
    }
    // A runtime removes a sandbox after its containers, so every container belongs to one of these.
    return (await mapInParallel(sandboxIds, PARTS_AT_ONCE, signal, list)).flat();
  }

  // A list and its streaming variant encode requests and responses identically.
  async #both(
    sandboxMethod: string,
    containerMethod: string,
    filter: ListFilter,
    signal: AbortSignal,
  ): Promise<Listed> {
    const { sandboxFilter, containerFilter } = requestFilters(filter);
    const sandboxes = ListPodSandboxRequest.encode(
      ListPodSandboxRequest.fromPartial({ filter: sandboxFilter }),
    );
    const containers = ListContainersRequest.encode(
      ListContainersRequest.fromPartial({ filter: containerFilter }),
    );
    const [listedSandboxes, listedContainers] = await bothAtOnce(
      signal,
      (both) => this.#items(sandboxMethod, sandboxes.finish(), this.#sandboxes, both),
      (both) => this.#items(containerMethod, containers.finish(), this.#containers, both),
    );
    if (!sandboxFilter) {
      this.#sandboxes.listed();
      this.#containers.listed();
    }
    return { sandboxes: listedSandboxes, containers: listedContainers };
  }

  #items<Item>(
    method: string,
    request: Uint8Array,
    known: KnownItems<Item>,
    signal: AbortSignal,
  ): Promise<Item[]> {
    const { maxMessageSize, maxListed } = this.#settings;
    return this.#calls.ask({ method }, signal, (_client, callSignal, { raw }) =>
      raw.call(
        method,
        request,
        new ListItems({
          maxBytes: maxMessageSize,
          maxItems: maxListed,
          read: (reader, end) => known.read(reader, end),
        }),
        callSignal,
      ),
    );
  }
}

interface RequestFilters {
  sandboxFilter?: { id?: string; labelSelector?: Record<string, string> };
  containerFilter?: { podSandboxId?: string; labelSelector?: Record<string, string> };
}

function requestFilters({ podUid, sandboxId }: ListFilter): RequestFilters {
  if (sandboxId !== undefined)
    return { sandboxFilter: { id: sandboxId }, containerFilter: { podSandboxId: sandboxId } };
  if (podUid === undefined) return {};
  const labelSelector = { [podUidLabel]: podUid };
  return { sandboxFilter: { labelSelector }, containerFilter: { labelSelector } };
}
