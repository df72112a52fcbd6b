import {
  type Container,
  ListContainersRequest,
  ListPodSandboxRequest,
  type PodSandbox,
} from "../gen/runtime/v1/api.ts";
import { codeOf } from "../lib/index.ts";
import type { RuntimeCalls } from "./calls.ts";
import { KnownItems } from "./known-items.ts";
import type { ListCalls } from "./list-calls.ts";
import { readContainer, readSandbox } from "./list-decoding.ts";
import { ListItems } from "./list-items.ts";
import { bothAtOnce } from "./parallel.ts";
import type { RuntimeSettings } from "./settings.ts";

/** What to list; nothing for everything. */
export interface ListFilter {
  /** Of the pod, as the label with its UID has it. */
  podUid?: string;
  sandboxId?: string;
}

export interface Listed {
  sandboxes: readonly PodSandbox[];
  containers: readonly Container[];
}

// Tags of the last fields that are read: the field's number times 8.
const CREATED_AT_OF_SANDBOX = 32;
const CREATED_AT_OF_CONTAINER = 56;
const podUidLabel = "io.kubernetes.pod.uid";

/** Lists sandboxes and containers at once, as streams where the runtime has them. */
export class RuntimeLists {
  readonly #calls: RuntimeCalls;
  readonly #connection: ListCalls;
  readonly #settings: RuntimeSettings;
  readonly #sandboxes = new KnownItems(readSandbox, CREATED_AT_OF_SANDBOX);
  readonly #containers = new KnownItems(readContainer, CREATED_AT_OF_CONTAINER);
  // The connection on which the runtime said that it has no streaming lists.
  #withoutStreams: number | undefined;

  constructor(calls: RuntimeCalls, connection: ListCalls, settings: RuntimeSettings) {
    this.#calls = calls;
    this.#connection = connection;
    this.#settings = settings;
  }

  /** Everything, by default. Throws as the calls do; `exhausted` where a list is too large. */
  async list(filter: ListFilter, signal: AbortSignal): Promise<Listed> {
    if (this.#withoutStreams !== this.#connection.made) {
      try {
        return await this.#both("StreamPodSandboxes", "StreamContainers", filter, signal);
      } catch (error) {
        if (signal.aborted || codeOf(error) !== "unsupported") throw error;
        this.#withoutStreams = this.#connection.made;
      }
    }
    return await this.#both("ListPodSandbox", "ListContainers", filter, signal);
  }

  // Requests and answers of a list and of its stream are the same on the wire.
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
    const { maxReceiveBytes, maxListed } = this.#settings;
    return this.#calls.ask({ method }, signal, (_client, callSignal) =>
      this.#connection.call(
        method,
        request,
        new ListItems({
          maxBytes: maxReceiveBytes,
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
