import type { Channel } from "@grpc/grpc-js";
import {
  type PodLifecycleClient as GeneratedClient,
  PodLifecycleDefinition,
} from "@nodekeeper/core/gen/nodekeeper/lifecycle/v1alpha1/api.ts";
import { dialUnix, fromGrpcError } from "@nodekeeper/core/grpc";
import {
  Backoff,
  type Clock,
  codeOf,
  isNonRetryable,
  messageOf,
  NodekeeperError,
  pause,
  retryPolicies,
  systemClock,
  withDeadline,
  withPauses,
} from "@nodekeeper/core/lib";
import { ClientError, createClient, Status } from "nice-grpc";
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

/** Which pods; what is left out matches all. */
export type PodSelector = Partial<PodIdentity>;

export interface WatchPodsOptions {
  /** Continue after this cursor of an earlier item. Without it and `since`, a snapshot comes first. */
  cursor?: string;
  /** Without a cursor: begin with the events from this time on, milliseconds since the epoch. */
  since?: number;
  selector?: PodSelector;
  /** End after the events that are there already. Then nothing is tried again. Default: false. */
  stopAtEnd?: boolean;
  /** Give the pod's status with each event. Default: false. */
  withStatus?: boolean;
  /** Called when the agent can't be reached; the watch tries again and continues where it was. */
  onRetry?: (error: Error, delayMs: number) => void;
}

export interface GetPodsOptions {
  selector?: PodSelector;
  /** Wait until the runtime has been read after this call. Needs a UID in the selector. */
  fresh?: boolean;
}

const MOST_IN_BATCH = 256;
const LONGEST_ANSWER = 64 * 1024 * 1024;
const GET_DEADLINE_MS = 90_000;
// The agent sends something every 10 s.
const SILENCE_MS = 35_000;

/** What runs on this node, asked of the agent over its socket. */
export class PodLifecycleClient implements Disposable {
  readonly #socket: string;
  readonly #clock: Clock;
  readonly #channel: Channel;
  readonly #client: GeneratedClient;

  /** Throws `invalid` for a path that can be no socket. Connects at the first call. */
  constructor({ socket = defaultAgentSocket, clock = systemClock }: PodLifecycleClientOptions = {}) {
    this.#socket = socket;
    this.#clock = clock;
    this.#channel = dialUnix(socket, { maxReceiveBytes: LONGEST_ANSWER });
    this.#client = createClient(PodLifecycleDefinition, this.#channel);
  }

  /**
   * Events in order, from a snapshot, a cursor or a time on, until the signal aborts, which ends it quietly.
   * Continues after a restart of the agent without losing or repeating an event that the agent still knows.
   * Throws `invalid` for a bad cursor; with `stopAtEnd` also `unavailable`.
   */
  async *watch(options: WatchPodsOptions = {}, signal?: AbortSignal): AsyncGenerator<PodLifecycleItem> {
    const site = new CallSite(this.watch);
    const backoff = new Backoff(retryPolicies.agentWatch);
    let { cursor } = options;
    while (!signal?.aborted) {
      try {
        for await (const items of this.#watchOnce({ ...options, ...(cursor ? { cursor } : {}) }, signal)) {
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
        const failure = this.#explain(error);
        // The agent is there and refuses: asking again changes nothing.
        if (options.stopAtEnd || isNonRetryable(failure.code)) throw site.error(failure);
        const delayMs = backoff.next();
        options.onRetry?.(failure, delayMs);
        await this.#clock.sleep(delayMs, signal).catch(() => {});
      }
    }
  }

  /**
   * Statuses of pods, sorted by namespace and name. Throws `unavailable` where the agent can't be reached, or has not
   * been able to list the runtime's pods since its start; `deadline`, `invalid`.
   */
  async getPods(options: GetPodsOptions = {}, signal?: AbortSignal): Promise<PodStatus[]> {
    return [...(await this.#list(options, signal, new CallSite(this.getPods))).pods];
  }

  /** As `getPods`, with when the runtime was last listed and what is wrong with it now. */
  async listPods(options: GetPodsOptions = {}, signal?: AbortSignal): Promise<PodList> {
    return await this.#list(options, signal, new CallSite(this.listPods));
  }

  async #list(
    { selector = {}, fresh = false }: GetPodsOptions,
    signal: AbortSignal | undefined,
    site: CallSite,
  ): Promise<PodList> {
    try {
      const { pods, cursor, listedAt, problems } = await withDeadline(
        this.#clock,
        GET_DEADLINE_MS,
        "agent",
        signal,
        (scoped) => this.#client.get({ selector, fresh }, { signal: scoped }),
      );
      return { pods: pods.map(podStatusOf), cursor, listedAt: Number(listedAt), problems };
    } catch (error) {
      throw site.error(this.#explain(error));
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

  #explain(failure: unknown): NodekeeperError {
    const error = fromGrpcError(failure);
    const code = codeOf(error);
    // The agent answered, if only that it can't: the runtime is what it can't reach.
    if (code !== "unavailable" || (failure instanceof ClientError && failure.code !== Status.UNAVAILABLE)) {
      return error instanceof NodekeeperError ? error : new NodekeeperError(code, messageOf(error));
    }
    return new NodekeeperError(code, `no agent responds at ${this.#socket} (${messageOf(error)})`, {
      id: "NK1710",
    });
  }
}
