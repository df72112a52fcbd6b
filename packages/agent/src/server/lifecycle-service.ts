import type {
  DeepPartial,
  GetRequest,
  GetResponse,
  PodSelector,
  PodStatus,
  WatchRequest,
} from "@nodekeeper/core/gen/nodekeeper/lifecycle/v1alpha1/api.ts";
import { toServerError } from "@nodekeeper/core/grpc";
import {
  abortable,
  type Clock,
  codeOf,
  LoopTurns,
  messageOf,
  NodekeeperError,
  pause,
  stopped,
  withDeadline,
  withPauses,
} from "@nodekeeper/core/lib";
import { type CallContext, ServerError, type ServiceImplementation, Status } from "nice-grpc";
import {
  formatCursor,
  type LogItem,
  type LogPosition,
  type PodIdentity,
  type PodLifecycleEventGenerator,
  parseCursor,
} from "../lifecycle/index.ts";
import {
  type lifecycleDefinition,
  type WatchAnswer,
  WatchAnswers,
  type WatchBytes,
} from "./watch-answers.ts";

export interface LifecycleServiceOptions {
  lifecycle: Pick<
    PodLifecycleEventGenerator,
    "events" | "statuses" | "isKnown" | "listedSoon" | "listedAt" | "problems"
  >;
  clock: Clock;
  /** Ends every stream when it aborts. */
  signal: AbortSignal;
  /** How many watches may be open at a time. Default: 1024. */
  mostWatches?: number;
  /** Called for each watch that is refused because too many are open. */
  onRefused: (message: string) => void;
}

// Each costs some 30 KB and a write for every event.
const MOST_WATCHES = 1_024;
const BOOKMARK_INTERVAL_MS = 10_000;
// A consumer whose pods have no events is sent the position of the log.
const MOST_HIDDEN = 1_000;
const FRESH_DEADLINE_MS = 60_000;

/** nodekeeper.lifecycle.v1alpha1.PodLifecycle over the event log and the cache of statuses. */
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
      const message = `${this.#watches} watches are open, the most that the agent serves`;
      onRefused(message);
      throw toServerError(new NodekeeperError("exhausted", message, { id: "NK1713" }));
    }
    this.#watches++;
    try {
      yield* this.#watch(request, AbortSignal.any([context.signal, signal]));
    } catch (error) {
      throw codeOf(error) === "unavailable" ? refusal(error) : error;
    } finally {
      this.#watches--;
    }
    if (signal.aborted) throw toServerError(stopped("the agent is stopping"));
  }

  async *#watch(request: WatchRequest, signal: AbortSignal): AsyncGenerator<WatchBytes> {
    const { clock, lifecycle } = this.#options;
    const { events } = lifecycle;
    const most = Math.min(Math.max(request.maxBatch, 1), this.#answers.mostInBatch);
    const end = events.position;
    const after = this.#begin(request);
    // The last event that the consumer knows of; -1: not known yet.
    let sent = after?.log === events.id ? after.sequence : -1;
    if (request.stopAtEnd && sent >= end.sequence) return;
    // Statuses are known only once the runtime has been read; the log may be of an earlier run.
    if (request.withStatus || !lifecycle.isKnown) await lifecycle.listedSoon(signal);
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
    await this.#listed(AbortSignal.any([context.signal, signal]));
    if (fresh) {
      const uid = selector?.uid;
      if (!uid) throw toServerError(new NodekeeperError("invalid", "fresh requires the pod's uid"));
      const since = clock.monotonic();
      try {
        await withDeadline(clock, FRESH_DEADLINE_MS, "reading the pod", context.signal, (scope) =>
          abortable(statuses.getNewerThan(uid, since, scope), scope),
        );
      } catch (error) {
        throw toServerError(error);
      }
    }
    // Together without a pause: the cache is written before events are seen.
    const cursor = formatCursor(events.position);
    const pods = statuses
      .uids()
      .flatMap((uid) => (selector?.uid && selector.uid !== uid ? [] : [this.#answers.status(uid)]))
      .filter((pod) => pod !== undefined && isSelected(pod.pod!, selector));
    return {
      pods: pods.sort((a, b) => compareIdentity(a!.pod!, b!.pod!)) as PodStatus[],
      cursor,
      listedAt: BigInt(lifecycle.listedAt ?? 0),
      problems: lifecycle.problems(),
    };
  }

  async #listed(signal: AbortSignal): Promise<void> {
    try {
      await this.#options.lifecycle.listedSoon(signal);
    } catch (error) {
      throw refusal(error);
    }
  }

  #begin({ cursor, since }: WatchRequest): LogPosition | undefined {
    try {
      if (cursor) return parseCursor(cursor);
    } catch (error) {
      throw toServerError(error);
    }
    return since === undefined ? undefined : this.#options.lifecycle.events.positionAt(Number(since));
  }

  // undefined: nothing that the consumer asked for.
  #encode(item: LogItem, { selector, withStatus }: WatchRequest): WatchAnswer | undefined {
    if (item.kind === "event")
      return isSelected(item.event.pod, selector) ? this.#answers.event(item, withStatus) : undefined;
    const isWhole = selector === undefined || Object.values(selector).every((text) => text === "");
    const pods = isWhole ? item.pods : item.pods.filter((pod) => isSelected(pod, selector));
    return this.#answers.snapshot({ ...item, pods }, withStatus, isWhole);
  }
}

// UNAVAILABLE would mean that the agent can't be reached: it is the container runtime that can't.
function refusal(error: unknown): ServerError {
  if (codeOf(error) !== "unavailable") return toServerError(error);
  return new ServerError(Status.FAILED_PRECONDITION, messageOf(error));
}

function isSelected(pod: PodIdentity, selector: PodSelector | undefined): boolean {
  if (!selector) return true;
  const { uid, namespace, name } = selector;
  return (
    (uid === "" || uid === pod.uid) &&
    (namespace === "" || namespace === pod.namespace) &&
    (name === "" || name === pod.name)
  );
}

function compareIdentity(a: PodIdentity, b: PodIdentity): number {
  const keyOf = ({ namespace, name, uid }: PodIdentity) => `${namespace}\0${name}\0${uid}`;
  return keyOf(a) < keyOf(b) ? -1 : 1;
}
