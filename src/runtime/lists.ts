import type { Container, PodSandbox } from "../gen/runtime/v1/api.ts";
import { codeOf } from "../lib/index.ts";
import type { RuntimeCalls } from "./calls.ts";
import type { RuntimeConnection } from "./connection.ts";
import { bothAtOnce } from "./parallel.ts";

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

const podUidLabel = "io.kubernetes.pod.uid";

/** Lists sandboxes and containers at once, as streams where the runtime has them. */
export class RuntimeLists {
  readonly #calls: RuntimeCalls;
  readonly #connection: RuntimeConnection;
  // The connection on which the runtime said that it has no streaming lists.
  #withoutStreams: number | undefined;

  constructor(calls: RuntimeCalls, connection: RuntimeConnection) {
    this.#calls = calls;
    this.#connection = connection;
  }

  /** Everything, by default. Throws as the calls do; `exhausted` where a list is too large. */
  async list(filter: ListFilter, signal: AbortSignal): Promise<Listed> {
    if (this.#withoutStreams !== this.#connection.made) {
      try {
        return await this.#streamed(filter, signal);
      } catch (error) {
        if (signal.aborted || codeOf(error) !== "unsupported") throw error;
        this.#withoutStreams = this.#connection.made;
      }
    }
    return await this.#whole(filter, signal);
  }

  async #streamed(filter: ListFilter, signal: AbortSignal): Promise<Listed> {
    const { sandboxFilter, containerFilter } = requestFilters(filter);
    const [sandboxes, containers] = await bothAtOnce(
      signal,
      (both) =>
        this.#calls.collect(
          { method: "StreamPodSandboxes" },
          both,
          (client, callSignal) =>
            client.streamPodSandboxes({ filter: sandboxFilter }, { signal: callSignal }),
          (part) => part.podSandboxes,
        ),
      (both) =>
        this.#calls.collect(
          { method: "StreamContainers" },
          both,
          (client, callSignal) =>
            client.streamContainers({ filter: containerFilter }, { signal: callSignal }),
          (part) => part.containers,
        ),
    );
    return { sandboxes, containers };
  }

  async #whole(filter: ListFilter, signal: AbortSignal): Promise<Listed> {
    const { sandboxFilter, containerFilter } = requestFilters(filter);
    const [{ items }, { containers }] = await bothAtOnce(
      signal,
      (both) =>
        this.#calls.ask({ method: "ListPodSandbox" }, both, (client, callSignal) =>
          client.listPodSandbox({ filter: sandboxFilter }, { signal: callSignal }),
        ),
      (both) =>
        this.#calls.ask({ method: "ListContainers" }, both, (client, callSignal) =>
          client.listContainers({ filter: containerFilter }, { signal: callSignal }),
        ),
    );
    return { sandboxes: items, containers };
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
