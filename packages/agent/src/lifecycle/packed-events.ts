import { deflateRawSync, inflateRawSync } from "node:zlib";
import type { ContainerIdentity, PodIdentity } from "@nodekeeper/api/lifecycle";
import type { PodLifecycleEvent } from "./events.ts";

// Low, because events are compressed on the main thread.
const COMPRESSION = { level: 3 };

type Row = [
  at: number,
  type: PodLifecycleEvent["type"],
  pod: number,
  container: number | null,
  exitCode: number | null,
  reason: string,
];

interface Content {
  pods: PodIdentity[];
  containers: ContainerIdentity[];
  rows: Row[];
}

/** Compressed events with consecutive sequence numbers, about 25 bytes each. */
export class PackedEvents {
  /** Sequence number of the first event. */
  readonly first: number;
  /** The latest time of an event, milliseconds since the epoch. */
  readonly latestAt: number;
  readonly #bytes: Uint8Array;
  // Decompressed, for consumers that read one event after the other. Weak, so that they can be collected between reads.
  #unpacked: WeakRef<readonly PodLifecycleEvent[]> | undefined;

  /** @param events at least one, with consecutive sequence numbers */
  constructor(events: readonly PodLifecycleEvent[]) {
    this.first = events[0]!.sequence;
    this.latestAt = events.reduce((latest, { at }) => Math.max(latest, at), 0);
    // A copy, because zlib's result may be a slice of a larger buffer.
    this.#bytes = new Uint8Array(deflateRawSync(JSON.stringify(contentOf(events)), COMPRESSION));
  }

  /** The events in their order. They are shared, and must not be modified. */
  get events(): readonly PodLifecycleEvent[] {
    const known = this.#unpacked?.deref();
    if (known) return known;
    const content = JSON.parse(inflateRawSync(this.#bytes).toString()) as Content;
    const events = eventsOf(content, this.first);
    this.#unpacked = new WeakRef(events);
    return events;
  }
}

function contentOf(events: readonly PodLifecycleEvent[]): Content {
  const pods = new Distinct<PodIdentity>();
  const containers = new Distinct<ContainerIdentity>();
  const rows = events.map(({ at, type, pod, container, exitCode, reason }): Row => {
    const index = container === undefined ? null : containers.indexOf(container);
    return [at, type, pods.indexOf(pod), index, exitCode ?? null, reason];
  });
  return { pods: pods.items, containers: containers.items, rows };
}

function eventsOf({ pods, containers, rows }: Content, first: number): PodLifecycleEvent[] {
  return rows.map(([at, type, pod, container, exitCode, reason], index) => ({
    sequence: first + index,
    at,
    type,
    pod: pods[pod]!,
    container: container === null ? undefined : containers[container],
    exitCode: exitCode ?? undefined,
    reason,
  }));
}

/** Deduplicates by content, because events of a restored log do not always share objects. */
class Distinct<T> {
  readonly items: T[] = [];
  readonly #indexes = new Map<string, number>();

  indexOf(item: T): number {
    const key = JSON.stringify(item);
    const known = this.#indexes.get(key);
    if (known !== undefined) return known;
    this.#indexes.set(key, this.items.length);
    return this.items.push(item) - 1;
  }
}
