import { setTimeout as sleep } from "node:timers/promises";

/** Calls `read` every 100 ms until stopped. `stop` returns all results, or rejects if a read failed. */
export function sample<T>(read: () => Promise<T>): { stop(): Promise<T[]> } {
  const found: T[] = [];
  let isOver = false;
  const done = (async () => {
    while (!isOver) {
      found.push(await read());
      await sleep(100);
    }
  })();
  // Told by stop(); a case that fails before it must not fail the whole run.
  done.catch(() => {});
  return {
    async stop() {
      isOver = true;
      await done;
      return found;
    },
  };
}
