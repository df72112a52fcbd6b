import type { Change } from "./change.ts";

interface Channel {
  history: Change[];
  /** Changes up to this revision were discarded. */
  forgotten: number;
  listeners: Set<(change: Change) => void>;
}

/** Keeps the last changes of each kind and passes new ones to its watchers, in order. */
export class WatchHub {
  readonly #limit: number;
  readonly #channels = new Map<string, Channel>();
  #start = 0;

  /** @param limit number of changes kept per kind */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Sets the revision of a restored store. Earlier changes are not available. */
  startAt(revision: number): void {
    this.#start = revision;
  }

  publish(storage: string, change: Change): void {
    const channel = this.#channel(storage);
    channel.history.push(change);
    if (channel.history.length >= this.#limit + Math.ceil(this.#limit / 4)) this.#trim(channel);
    for (const listener of channel.listeners) listener(change);
  }

  /** Returns the changes after a revision. Undefined if some of them were discarded. */
  since(storage: string, revision: number): Change[] | undefined {
    const { history, forgotten } = this.#channel(storage);
    if (revision < forgotten) return undefined;
    return history.slice(firstAfter(history, revision));
  }

  /** Discards the history of all kinds, like a compaction. */
  compact(revision: number): void {
    this.#start = revision;
    for (const channel of this.#channels.values()) {
      channel.history = [];
      channel.forgotten = revision;
    }
  }

  /** Returns a function that unsubscribes. */
  subscribe(storage: string, listener: (change: Change) => void): () => void {
    const { listeners } = this.#channel(storage);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  #channel(storage: string): Channel {
    let channel = this.#channels.get(storage);
    if (!channel) {
      channel = { history: [], forgotten: this.#start, listeners: new Set() };
      this.#channels.set(storage, channel);
    }
    return channel;
  }

  // Discards a quarter at a time: moving the array on every change would cost more than the change itself.
  #trim(channel: Channel): void {
    const dropped = channel.history.length - this.#limit;
    channel.forgotten = channel.history[dropped - 1]!.revision;
    channel.history = channel.history.slice(dropped);
  }
}

function firstAfter(history: Change[], revision: number): number {
  let low = 0;
  let high = history.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (history[middle]!.revision <= revision) low = middle + 1;
    else high = middle;
  }
  return low;
}
