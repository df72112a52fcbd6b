import { childScope } from "@nodekeeper/core/lib";

/**
 * Calls `work` for every item with at most `limit` concurrent calls. Returns the results in order. The first
 * failure aborts the signal of the other calls, and is thrown after they have ended.
 */
export async function mapInParallel<Item, Result>(
  items: readonly Item[],
  limit: number,
  signal: AbortSignal,
  work: (item: Item, signal: AbortSignal) => Promise<Result>,
): Promise<Result[]> {
  using scope = childScope(signal);
  const results = new Array<Result>(items.length);
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      scope.signal.throwIfAborted();
      const index = next++;
      results[index] = await work(items[index]!, scope.signal);
    }
  };
  const workers = Array.from({ length: Math.min(limit, items.length) }, async () => {
    try {
      await worker();
    } catch (error) {
      scope.abort(error);
      throw error;
    }
  });
  const failed = (await Promise.allSettled(workers)).find(({ status }) => status === "rejected");
  if (failed) throw scope.signal.reason;
  return results;
}

/** Makes two calls concurrently. The first failure aborts the other call and is thrown. */
export async function bothAtOnce<One, Other>(
  signal: AbortSignal,
  one: (signal: AbortSignal) => Promise<One>,
  other: (signal: AbortSignal) => Promise<Other>,
): Promise<[One, Other]> {
  using scope = childScope(signal);
  try {
    return await Promise.all([one(scope.signal), other(scope.signal)]);
  } catch (error) {
    scope.abort(error);
    throw error;
  }
}
