import type { CallContext } from "nice-grpc";
import {
  type DeepPartial,
  type GetRequest,
  type GetResponse,
  type PodLifecycleServiceImplementation,
  type PodSelector,
  type PodStatus,
  Snapshot_Why,
  type WatchRequest,
  type WatchResponse,
} from "../gen/nodekeeper/lifecycle/v1alpha1/api.ts";
import { toServerError } from "../grpc/index.ts";
import {
  abortable,
  type Clock,
  NodekeeperError,
  pause,
  stopped,
  withDeadline,
  withPauses,
} from "../lib/index.ts";
import {
  type EventLog,
  formatCursor,
  type LogItem,
  type LogPosition,
  type PodIdentity,
  type PodStatusReader,
  parseCursor,
} from "../lifecycle/index.ts";
import { eventMessage, podMessage, podStatusMessage } from "./lifecycle-messages.ts";

export interface LifecycleServiceOptions {
  events: EventLog;
  statuses: PodStatusReader;
  clock: Clock;
  /** Ends every stream when it aborts. */
  signal: AbortSignal;
}

const BOOKMARK_INTERVAL_MS = 10_000;
// A consumer whose pods are quiet among others learns how far the log is.
const MOST_HIDDEN = 1_000;
const FRESH_DEADLINE_MS = 60_000;

/** nodekeeper.lifecycle.v1alpha1.PodLifecycle over the event log and the cache of statuses. */
export class LifecycleService implements PodLifecycleServiceImplementation {
  readonly #options: LifecycleServiceOptions;

  constructor(options: LifecycleServiceOptions) {
    this.#options = options;
  }

  async *watch(request: WatchRequest, context: CallContext): AsyncGenerator<DeepPartial<WatchResponse>> {
    const { clock, events, signal } = this.#options;
    const either = AbortSignal.any([context.signal, signal]);
    const end = events.position;
    const after = this.#begin(request);
    const items = events.read(after ? { after } : {}, either);
    // The last event that the consumer knows of; -1: not known yet.
    let told = after?.log === events.id ? after.sequence : -1;
    let hidden = 0;
    if (request.stopAtEnd && told >= end.sequence) return;
    for await (const item of withPauses(items, clock, BOOKMARK_INTERVAL_MS)) {
      if (item !== pause) told = item.position.sequence;
      const isAtEnd = request.stopAtEnd && told >= end.sequence;
      const message = item === pause ? undefined : this.#message(item, request);
      hidden = message ? 0 : hidden + 1;
      if (message) yield message;
      else if (told >= 0 && (item === pause || isAtEnd || hidden >= MOST_HIDDEN)) {
        hidden = 0;
        yield { cursor: formatCursor({ log: events.id, sequence: told }), bookmark: {} };
      }
      if (isAtEnd) return;
    }
    if (signal.aborted) throw toServerError(stopped("the agent is stopping"));
  }

  async get(request: GetRequest, context: CallContext): Promise<DeepPartial<GetResponse>> {
    const { clock, events, statuses } = this.#options;
    const { selector, fresh } = request;
    if (fresh) {
      const uid = selector?.uid;
      if (!uid) throw toServerError(new NodekeeperError("invalid", "fresh needs the pod's uid"));
      const since = clock.monotonic();
      try {
        await withDeadline(clock, FRESH_DEADLINE_MS, "reading the pod", context.signal, (signal) =>
          abortable(statuses.getNewerThan(uid, since, signal), signal),
        );
      } catch (thrown) {
        throw toServerError(thrown);
      }
    }
    // Together without a pause: the cache is written before events are seen.
    const cursor = formatCursor(events.position);
    const pods = statuses
      .uids()
      .flatMap((uid) => (selector?.uid && selector.uid !== uid ? [] : [this.#status(uid)]))
      .filter((pod) => pod !== undefined && isSelected(pod.pod!, selector));
    return { pods: pods.sort((a, b) => compareIdentity(a!.pod!, b!.pod!)) as PodStatus[], cursor };
  }

  #begin({ cursor, since }: WatchRequest): LogPosition | undefined {
    try {
      if (cursor) return parseCursor(cursor);
    } catch (thrown) {
      throw toServerError(thrown);
    }
    return since === undefined ? undefined : this.#options.events.positionAt(Number(since));
  }

  #message(item: LogItem, { selector, withStatus }: WatchRequest): DeepPartial<WatchResponse> | undefined {
    const cursor = formatCursor(item.position);
    const statusOf = (uid: string) => (withStatus ? this.#status(uid) : undefined);
    if (item.kind === "event") {
      const { event } = item;
      return isSelected(event.pod, selector)
        ? { cursor, event: eventMessage(event, statusOf(event.pod.uid)) }
        : undefined;
    }
    const pods = item.pods.filter((pod) => isSelected(pod, selector));
    const why = item.why === "begin" ? Snapshot_Why.BEGIN : Snapshot_Why.FELL_OFF;
    const missed = item.missed === undefined ? {} : { missed: BigInt(item.missed) };
    return {
      cursor,
      snapshot: { why, ...missed, pods: pods.map((pod) => podMessage(pod, statusOf(pod.uid))) },
    };
  }

  // undefined: the runtime has no such pod.
  #status(uid: string): PodStatus | undefined {
    const { clock, statuses } = this.#options;
    const entry = statuses.get(uid);
    if (entry.status.name === "" && !entry.error) return undefined;
    return podStatusMessage(entry, clock.now() - (clock.monotonic() - entry.observedAt));
  }
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
