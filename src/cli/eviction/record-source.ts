import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import type { RoundRecord } from "../../eviction/index.ts";
import { messageOf, NodekeeperError, parseDuration } from "../../lib/index.ts";
import type { RecordPage } from "../../server/index.ts";
import { askAgent } from "../agent-client.ts";

/** The wall time that "1h" ago was, milliseconds. Throws `invalid`. */
export function sinceOf(text: string, now: number): number {
  const ms = parseDuration(text);
  if (ms < 0) throw new NodekeeperError("invalid", `--since takes how long ago, such as "1h"; got "${text}"`);
  return Math.max(Math.floor(now - ms), 0);
}

/** Whole rounds of the running agent, oldest first, page by page. */
export async function* recordsOfAgent(server: string, since: number): AsyncGenerator<RoundRecord> {
  for (let after = 0; ; ) {
    const path = `/api/v1/eviction/records?since=${since}&after=${after}`;
    const { records, next } = await askAgent<RecordPage>(server, path);
    yield* records;
    if (next === undefined) return;
    after = next;
  }
}

/** Whole rounds of a file that `nodekeeper rounds --records` wrote. Throws `invalid` with the line that is none. */
export async function* recordsOfFile(path: string): AsyncGenerator<RoundRecord> {
  const lines = createInterface({
    input: createReadStream(path, "utf8"),
    crlfDelay: Number.POSITIVE_INFINITY,
  });
  let number = 0;
  try {
    for await (const line of lines) {
      number++;
      if (line.trim() !== "") yield readRecord(line);
    }
  } catch (error) {
    throw new NodekeeperError("invalid", `${path}, line ${number}: ${messageOf(error)}`, { cause: error });
  } finally {
    lines.close();
  }
}

function readRecord(line: string): RoundRecord {
  const record = JSON.parse(line) as Partial<RoundRecord> | null;
  const { id, input, decision } = record ?? {};
  const isRecord =
    typeof id === "number" &&
    Array.isArray(input?.pods) &&
    Array.isArray(input.plugins) &&
    Array.isArray(decision?.victims);
  if (!isRecord) throw new NodekeeperError("invalid", "no recorded round");
  return record as RoundRecord;
}
