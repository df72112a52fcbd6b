/** What a queue holds: anything with a pod's UID. */
export interface Queued {
  uid: string;
}

/**
 * Adds a batch at the end, in its order; what is queued already keeps its place. With `override`, only the batch
 * counts: what it does not name is withdrawn, and its order is the new one.
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

/** The queue without the pods named. */
export function withdrawFromQueue<T extends Queued>(queue: readonly T[], uids: readonly string[]): T[] {
  return queue.filter((item) => !uids.includes(item.uid));
}

/** Takes up to `burst` from the front; all when that is negative. */
export function popQueue<T extends Queued>(queue: readonly T[], burst: number): { popped: T[]; left: T[] } {
  const count = burst < 0 ? queue.length : burst;
  return { popped: queue.slice(0, count), left: queue.slice(count) };
}
