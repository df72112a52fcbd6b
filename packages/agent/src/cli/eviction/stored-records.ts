import { statSync } from "node:fs";
import type { RoundRecord } from "@nodekeeper/api/records";
import { silentLogger, systemClock } from "@nodekeeper/core/lib";
import { EvictionRecords, type HistoryLine, importLine, RecordQueries } from "../../eviction/index.ts";
import { EvictionStore, HistoryStore, StateCopy } from "../../state/index.ts";
import { linesOfFile, type RecordSource } from "./record-source.ts";

/**
 * Opens the records of a state directory, its database, or a file written by `rounds --records`; the caller disposes of
 * them. Throws `notFound`, `invalid` or `corrupt` for a path without records, and as `StateCopy.of`.
 */
export async function openStoredRecords(path: string): Promise<RecordSource> {
  const isDirectory = statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
  if (!isDirectory && !path.endsWith(".db")) return await ofFile(linesOfFile(path));
  return storedSource(await StateCopy.of(path, systemClock));
}

function storedSource(copy: StateCopy): RecordSource {
  const { records, history } = storesOf(copy);
  const queries = new RecordQueries(records, history);
  const { signal } = new AbortController();
  return {
    isLive: false,
    explainPod: (pod) => queries.explainPod(pod, signal),
    explainNode: async () => queries.explainNode(),
    rounds: (since, after) => queries.rounds(since, after, signal),
    records: (since) => queries.records(since, 0, signal),
    async *history(since) {
      for (let after: number | undefined = 0; after !== undefined; ) {
        const page = queries.historyPage(since, after);
        yield* page.lines;
        after = page.next;
      }
    },
    [Symbol.dispose]: () => copy.close(),
  };
}

/** Opens the records of an exported file. Throws `invalid` with the malformed line. */
export async function ofFile(lines: AsyncIterable<RoundRecord | HistoryLine>): Promise<RecordSource> {
  const copy = StateCopy.empty(systemClock);
  try {
    const stores = storesOf(copy);
    for await (const line of lines) importLine(line, stores);
    return storedSource(copy);
  } catch (error) {
    copy.close();
    throw error;
  }
}

function storesOf({ database }: StateCopy) {
  const evictions = new EvictionStore(database);
  const bounds = { maxAge: Number.MAX_SAFE_INTEGER, maxSize: Number.MAX_SAFE_INTEGER };
  const records = new EvictionRecords({
    store: evictions,
    settings: () => bounds,
    clock: systemClock,
    log: silentLogger,
  });
  return { evictions, records, history: new HistoryStore(database) };
}
