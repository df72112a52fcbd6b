import type { ApiAnswers } from "@nodekeeper/api/openapi";
import type { AgentConnection } from "../agent-connection.ts";
import { printMessage } from "../output.ts";
import type { RecordSource } from "./record-source.ts";

/** Returns the records of a running agent. Disposing of them closes the connection. */
export function agentRecords(agent: AgentConnection): RecordSource {
  return {
    isLive: true,
    explainPod: (pod) => agent.get("eviction/explain", { pod }),
    explainNode: () => agent.get("eviction/node"),
    rounds: (since, after) => agent.get("eviction/rounds", { since, after }),
    async *records(since) {
      for (let after: number | undefined = 0; after !== undefined; ) {
        const page: ApiAnswers["eviction/records"] = await agent.get("eviction/records", { since, after });
        for (const { id, bytes } of page.tooLarge) warnOfSize(id, bytes);
        yield* page.records;
        after = page.next;
      }
    },
    async *history(since) {
      for (let after: number | undefined = 0; after !== undefined; ) {
        const page: ApiAnswers["eviction/history"] = await agent.get("eviction/history", { since, after });
        yield* page.lines;
        after = page.next;
      }
    },
    [Symbol.dispose]: () => agent[Symbol.dispose](),
  };
}

function warnOfSize(id: number, bytes: number): void {
  const size = (bytes / 1024 / 1024).toFixed(1);
  printMessage(`warning: skipped round ${id}: ${size} MiB exceeds the maximum response size`);
}
