import type { Channel } from "@grpc/grpc-js";
import { AgentUnreachable } from "@nodekeeper/api/errors";
import {
  type PodLifecycleClient as GeneratedClient,
  PodLifecycleDefinition,
} from "@nodekeeper/core/gen/nodekeeper/lifecycle/v1alpha1/api.ts";
import { dialUnix, errorIdTrailer, fromGrpcError } from "@nodekeeper/core/grpc";
import {
  Backoff,
  type Clock,
  codeOf,
  type ErrorId,
  isNonRetryable,
  messageOf,
  NodekeeperError,
  pause,
  retryPolicies,
  sleepOrAbort,
  systemClock,
  withDeadline,
  withPauses,
} from "@nodekeeper/core/lib";
import { ClientError, createClient, type Metadata, Status } from "nice-grpc";
import { CallSite } from "./author-error.ts";
import {
  itemOf,
  type PodIdentity,
  type PodLifecycleItem,
  type PodList,
  type PodStatus,
  podStatusOf,
} from "./lifecycle-model.ts";

export const defaultAgentSocket = "/run/nodekeeper/nodekeeper.sock";

export interface PodLifecycleClientOptions {
  /** The agent's API socket. Default: /run/nodekeeper/nodekeeper.sock. */
  socket?: string;
  clock?: Clock;
}

/** Selects pods. Omitted fields match all. */
export type PodSelector = Partial<PodIdentity>;

export interface WatchPodsOptions {
  /** Continue after this cursor of an earlier item. Without it and `since`, a snapshot is sent first. */
  cursor?: string;
  /** Without a cursor: start with the events from this time on, milliseconds since the epoch. */
  since?: number;
  selector?: PodSelector;
  /** End after the existing events, without retries. Default: false. */
  stopAtEnd?: boolean;
  /** Include the pod's status in each event. Default: false. */
  withStatus?: boolean;
  /** Called when the agent can't be reached. The watch retries and continues where it stopped. */
  onRetry?: (error: Error, delayMs: number) => void;
}

export interface GetPodsOptions {
  selector?: PodSelector;
  /** Wait until the runtime has been read after this call. Requires a UID in the selector. */
  fresh?: boolean;
}

/** Receives the error ID with which the agent refused a call; undefined if the agent did not respond. */
class AgentRefusal {
  id: ErrorId | undefined;

  readonly onTrailer = (trailer: Metadata): void => {
    const id = trailer.get(errorIdTrailer);
    if (id !== undefined && /^NK\d+$/.test(id)) this.id = id as ErrorId;
  };
}

const MOST_IN_BATCH = 256;
const LONGEST_ANSWER = 64 * 1024 * 1024;
const GET_DEADLINE_MS = 90_000;
// The agent sends at least one message every 10 s.
const SILENCE_MS = 35_000;

/** Reads and watches the node's pods through the agent's socket. */
export class PodLifecycleClient implements Disposable {
  readonly #socket: string;
  readonly #clock: Clock;
  readonly #channel: Channel;
  readonly #client: GeneratedClient;

  /** Throws `invalid` if the path can't be a socket. Connects at the first call. */
  constructor({ socket = defaultAgentSocket, clock = systemClock }: PodLifecycleClientOptions = {}) {
    this.#socket = socket;
    this.#clock = clock;
    this.#channel = dialUnix(socket, { maxReceiveBytes: LONGEST_ANSWER, isTrusted: true });
    this.#client = createClient(PodLifecycleDefinition, this.#channel);
  }

  /**
   * Yields events in order, starting from a snapshot, a cursor or a time, and returns when the signal aborts. After a
   * restart of the agent, it continues without losing or repeating an event that the agent still has. Throws `invalid`
   * for a bad cursor; with `stopAtEnd` also `unavailable`.
   */
  async *watch(options: WatchPodsOptions = {}, signal?: AbortSignal): AsyncGenerator<PodLifecycleItem> {
    const site = new CallSite(this.watch);
    const backoff = new Backoff(retryPolicies.agentWatch);
    let { cursor } = options;
    while (!signal?.aborted) {
      const refusal = new AgentRefusal();
      try {
        const once = this.#watchOnce({ ...options, ...(cursor ? { cursor } : {}) }, refusal, signal);
        for await (const items of once) {
          backoff.reset();
          for (const item of items) {
            cursor = item.cursor;
            yield item;
            if (signal?.aborted) return;
          }
        }
        if (options.stopAtEnd) return;
        throw new NodekeeperError("unavailable", "the agent ended the watch");
      } catch (error) {
        if (signal?.aborted) return;
        const failure = this.#explain(error, refusal);
        // The agent refused the call, and a retry would fail too.
        if (options.stopAtEnd || isNonRetryable(failure.code)) throw site.error(failure);
        const delayMs = backoff.next();
        options.onRetry?.(failure, delayMs);
        await sleepOrAbort(this.#clock, delayMs, signal);
      }
    }
  }

  /**
   * Returns the statuses of pods, sorted by namespace and name. Throws `unavailable` if the agent can't be reached or
   * has not listed the runtime's pods since its start; also `deadline` and `invalid`.
   */
  async getPods(options: GetPodsOptions = {}, signal?: AbortSignal): Promise<PodStatus[]> {
    return [...(await this.#list(options, signal, new CallSite(this.getPods))).pods];
  }

  /** Like `getPods`, with the time of the last list and the runtime's current problems. */
  async listPods(options: GetPodsOptions = {}, signal?: AbortSignal): Promise<PodList> {
    return await this.#list(options, signal, new CallSite(this.listPods));
  }

  async #list(
    { selector = {}, fresh = false }: GetPodsOptions,
    signal: AbortSignal | undefined,
    site: CallSite,
  ): Promise<PodList> {
    const refusal = new AgentRefusal();
    try {
      const { pods, cursor, listedAt, problems } = await withDeadline(
        this.#clock,
        { ms: GET_DEADLINE_MS, name: "agent" },
        signal,
        (scoped) => this.#client.get({ selector, fresh }, { signal: scoped, onTrailer: refusal.onTrailer }),
      );
      return { pods: pods.map(podStatusOf), cursor, listedAt: Number(listedAt), problems };
    } catch (error) {
      throw site.error(this.#explain(error, refusal));
    }
  }

  close(): void {
    this.#channel.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  async *#watchOnce(
    options: WatchPodsOptions,
    refusal: AgentRefusal,
    signal?: AbortSignal,
  ): AsyncGenerator<readonly PodLifecycleItem[]> {
    const { cursor = "", since, selector = {}, stopAtEnd = false, withStatus = false } = options;
    const ending = new AbortController();
    const request = {
      cursor,
      ...(since === undefined ? {} : { since: BigInt(Math.round(since)) }),
      selector,
      stopAtEnd,
      withStatus,
      maxBatch: MOST_IN_BATCH,
    };
    const stream = this.#client.watch(request, {
      signal: signal ? AbortSignal.any([signal, ending.signal]) : ending.signal,
      onTrailer: refusal.onTrailer,
    });
    try {
      for await (const answer of withPauses(stream[Symbol.asyncIterator](), this.#clock, SILENCE_MS)) {
        if (answer === pause) {
          ending.abort();
          throw new NodekeeperError("deadline", `the agent sent nothing for ${SILENCE_MS / 1000} s`);
        }
        yield answer.batch ? answer.batch.answers.map(itemOf) : [itemOf(answer)];
      }
    } finally {
      ending.abort();
    }
  }

  #explain(failure: unknown, { id }: AgentRefusal): NodekeeperError {
    const error = fromGrpcError(failure);
    const code = codeOf(error);
    // The agent responded, so the error is not about reaching it: for example, the runtime is unreachable.
    if (id !== undefined) return new NodekeeperError(code, messageOf(error), { id });
    if (code !== "unavailable" || (failure instanceof ClientError && failure.code !== Status.UNAVAILABLE)) {
      return error instanceof NodekeeperError ? error : new NodekeeperError(code, messageOf(error));
    }
    return new AgentUnreachable(
      { problem: `no agent responds at ${this.#socket} (${messageOf(error)})` },
      { code },
    );
  }
}
