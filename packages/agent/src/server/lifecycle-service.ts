import { TooManyWatches } from "@nodekeeper/api/errors";
import type { PodIdentity } from "@nodekeeper/api/lifecycle";
import type {
  DeepPartial,
  GetRequest,
  GetResponse,
  PodStatus,
  WatchRequest,
} from "@nodekeeper/core/gen/nodekeeper/lifecycle/v1alpha1/api.ts";
import { errorIdTrailer, toServerError } from "@nodekeeper/core/grpc";
import {
  abortable,
  type Clock,
  errorIdOf,
  LoopTurns,
  NodekeeperError,
  pause,
  stopped,
  withDeadline,
  withPauses,
} from "@nodekeeper/core/lib";
import type { CallContext, ServiceImplementation } from "nice-grpc";
import { formatCursor, type LogItem, type LogPosition, parseCursor } from "../lifecycle/index.ts";
import { isSelected, type LifecycleReader } from "./lifecycle-routes.ts";
import {
  type lifecycleDefinition,
  type WatchAnswer,
  WatchAnswers,
  type WatchBytes,
} from "./watch-answers.ts";

export interface LifecycleServiceOptions {
  lifecycle: LifecycleReader;
  clock: Clock;
  /** Aborting it ends every stream. */
  signal: AbortSignal;
  /** Maximum number of open watches. Default: 1024. */
  mostWatches?: number;
  /** Called for each watch refused because of `mostWatches`. */
  onRefused: (message: string) => void;
}

const allPods = { uid: "", namespace: "", name: "" };
// Each watch costs some 30 KB and one write per event.
const MOST_WATCHES = 1_024;
const BOOKMARK_INTERVAL_MS = 10_000;
// After this many events that do not match its selector, a consumer gets a bookmark.
const MOST_HIDDEN = 1_000;
const FRESH_DEADLINE_MS = 60_000;

/** Implements nodekeeper.lifecycle.v1alpha1.PodLifecycle on the event log and the pod status cache. */
export class LifecycleService implements ServiceImplementation<typeof lifecycleDefinition> {
  readonly #options: LifecycleServiceOptions;
  readonly #answers: WatchAnswers;
  readonly #turns: LoopTurns;
  #watches = 0;

  constructor(options: LifecycleServiceOptions) {
    this.#options = options;
    this.#answers = new WatchAnswers({ statuses: options.lifecycle.statuses, clock: options.clock });
    this.#turns = new LoopTurns(options.clock);
  }

  async *watch(request: WatchRequest, context: CallContext): AsyncGenerator<WatchBytes> {
    const { signal, mostWatches = MOST_WATCHES, onRefused } = this.#options;
    if (this.#watches >= mostWatches) {
      const message = `${this.#watches} watches are open, which is the limit`;
      onRefused(message);
      throw toServerError(new TooManyWatches({ problem: message }));
    }
    this.#watches++;
    try {
      yield* this.#watch(request, AbortSignal.any([context.signal, signal]));
    } catch (error) {
      throw refusal(error, context);
    } finally {
      this.#watches--;
    }
    if (signal.aborted) throw toServerError(stopped("the agent is stopping"));
  }

  async *#watch(request: WatchRequest, signal: AbortSignal): AsyncGenerator<WatchBytes> {
    const { clock, lifecycle } = this.#options;
    const { events } = lifecycle;
    const most = Math.min(Math.max(request.maxBatch, 1), this.#answers.mostInBatch);
    const cursor = cursorOf(request);
    await events.knownSoon(signal);
    // Statuses are known only after a relist; the log may be from an earlier run.
    if (request.withStatus) await lifecycle.listedSoon(signal);
    const end = events.position;
    const after = cursor ?? this.#positionAt(request);
    // The last event known to the consumer; -1: not known yet.
    let sent = after?.log === events.id ? after.sequence : -1;
    if (request.stopAtEnd && sent >= end.sequence) return;
    const reader = events.read(after ? { after } : {}, signal);
    let hidden = 0;
    for await (const item of withPauses(reader, clock, BOOKMARK_INTERVAL_MS)) {
      await this.#turns.pass();
      const items = item === pause ? [] : [item, ...reader.takeReady(most - 1)];
      const last = items.at(-1);
      if (last) sent = last.position.sequence;
      const isAtEnd = request.stopAtEnd && sent >= end.sequence;
      const answers = items.flatMap((each) => this.#encode(each, request) ?? []);
      hidden = answers.length > 0 ? 0 : hidden + items.length;
      yield* this.#answers.batches(answers);
      const isQuiet = answers.length === 0 && (item === pause || isAtEnd || hidden >= MOST_HIDDEN);
      if (isQuiet && sent >= 0) {
        hidden = 0;
        yield this.#answers.bookmark({ log: events.id, sequence: sent }).bytes;
      }
      if (isAtEnd) return;
    }
  }

  async get(request: GetRequest, context: CallContext): Promise<DeepPartial<GetResponse>> {
    const { clock, lifecycle, signal } = this.#options;
    const { events, statuses } = lifecycle;
    const { selector, fresh } = request;
    try {
      await lifecycle.listedSoon(AbortSignal.any([context.signal, signal]));
    } catch (error) {
      throw refusal(error, context);
    }
    if (fresh) {
      const uid = selector?.uid;
      if (!uid) throw toServerError(new NodekeeperError("invalid", "fresh requires the pod's uid"));
      const since = clock.monotonic();
      try {
        await withDeadline(
          clock,
          { ms: FRESH_DEADLINE_MS, name: "reading the pod" },
          context.signal,
          (scope) => abortable(statuses.getNewerThan(uid, since, scope), scope),
        );
      } catch (error) {
        throw toServerError(error);
      }
    }
    // Read without an await in between: the cache is written before events become visible.
    const cursor = formatCursor(events.position);
    const pods = statuses
      .uids()
      .flatMap((uid) => (selector?.uid && selector.uid !== uid ? [] : [this.#answers.status(uid)]))
      .filter((pod) => pod !== undefined && isSelected(pod.pod!, selector ?? allPods));
    return {
      pods: pods.sort((a, b) => compareIdentity(a!.pod!, b!.pod!)) as PodStatus[],
      cursor,
      listedAt: BigInt(lifecycle.listedAt ?? 0),
      problems: lifecycle.problems(),
    };
  }

  #positionAt({ since }: WatchRequest): LogPosition | undefined {
    return since === undefined ? undefined : this.#options.lifecycle.events.positionAt(Number(since));
  }

  // Undefined if the item does not match the request.
  #encode(item: LogItem, { selector, withStatus }: WatchRequest): WatchAnswer | undefined {
    if (item.kind === "event")
      return isSelected(item.event.pod, selector ?? allPods)
        ? this.#answers.event(item, withStatus)
        : undefined;
    const isWhole = selector === undefined || Object.values(selector).every((text) => text === "");
    const pods = isWhole ? item.pods : item.pods.filter((pod) => isSelected(pod, selector));
    return this.#answers.snapshot({ ...item, pods }, withStatus, isWhole);
  }
}

// Throws `invalid`.
function cursorOf({ cursor }: WatchRequest): LogPosition | undefined {
  return cursor ? parseCursor(cursor) : undefined;
}

// The error id shows clients that the agent responded: UNAVAILABLE without it means that the agent is unreachable.
function refusal(error: unknown, { trailer }: CallContext): unknown {
  const id = errorIdOf(error);
  if (id !== undefined) trailer.set(errorIdTrailer, id);
  return error instanceof NodekeeperError ? toServerError(error) : error;
}

function compareIdentity(a: PodIdentity, b: PodIdentity): number {
  const keyOf = ({ namespace, name, uid }: PodIdentity) => `${namespace}\0${name}\0${uid}`;
  return keyOf(a) < keyOf(b) ? -1 : 1;
}
