import { statSync } from "node:fs";
import type { HistoryPage, RecordPage } from "../../server/index.ts";
import { askAgent } from "../agent-client.ts";
import { printMessage } from "../output.ts";
import { linesOfFile, type RecordSource } from "./record-source.ts";

/** The source of records: a running agent, or a path. */
export interface RecordPlace {
  /** "host:port" of the agent's status server. */
  server: string;
  /** A state directory, its database, or a file written by `rounds --records`; undefined for the agent. */
  from: string | undefined;
}

/** Opens a source of records; the caller disposes of it. Throws `notFound`, `invalid` or `corrupt` for a path without records. */
export async function openRecords({ server, from }: RecordPlace): Promise<RecordSource> {
  if (from === undefined) return agentSource(server);
  const isDatabase = from.endsWith(".db") || isDirectory(from);
  // Imported on demand: other commands do not need the database.
  const { ofFile, ofStateDirectory } = await import("./stored-records.ts");
  return isDatabase ? await ofStateDirectory(from) : await ofFile(linesOfFile(from));
}

/** The records of the running agent. */
function agentSource(server: string): RecordSource {
  const ask = <T>(path: string) => askAgent<T>(server, `/api/v1/eviction/${path}`);
  return {
    explainPod: (pod) => ask(`explain?pod=${encodeURIComponent(pod)}`),
    explainNode: () => ask("node"),
    rounds: (since, after) => ask(`rounds?since=${since}&after=${after}`),
    async *records(since) {
      for (let after: number | undefined = 0; after !== undefined; ) {
        const page: RecordPage = await ask(`records?since=${since}&after=${after}`);
        for (const { id, bytes } of page.tooLarge) warnOfSize(id, bytes);
        yield* page.records;
        after = page.next;
      }
    },
    async *history(since) {
      for (let after: number | undefined = 0; after !== undefined; ) {
        const page: HistoryPage = await ask(`history?since=${since}&after=${after}`);
        yield* page.lines;
        after = page.next;
      }
    },
    [Symbol.dispose]: () => {},
  };
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function warnOfSize(id: number, bytes: number): void {
  const size = (bytes / 1024 / 1024).toFixed(1);
  printMessage(`warning: round ${id} is skipped: ${size} MiB exceed the maximum size of a response`);
}
