/** An item of a queue, identified by its pod's UID. */
export interface Queued {
  uid: string;
}

/**
 * Appends a batch in its order. Items that are already queued keep their position. With `override`, the batch replaces
 * the queue. Pure.
 */
export function addToQueue<T extends Queued>(
  queue: readonly T[],
  batch: readonly T[],
  options: { override?: boolean } = {},
): T[] {
  const added = new Map<string, T>();
  for (const item of options.override ? batch : [...queue, ...batch]) {
    if (!added.has(item.uid)) added.set(item.uid, item);
  }
  return [...added.values()];
}

/** Returns the queue without the given pods. Pure. */
export function withdrawFromQueue<T extends Queued>(queue: readonly T[], uids: readonly string[]): T[] {
  return queue.filter((item) => !uids.includes(item.uid));
}

/** Removes up to `burst` items from the front; all if `burst` is negative. Pure. */
export function popQueue<T extends Queued>(queue: readonly T[], burst: number): { popped: T[]; left: T[] } {
  const count = burst < 0 ? queue.length : burst;
  return { popped: queue.slice(0, count), left: queue.slice(count) };
}
