import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import type { RoundRecord } from "../../eviction/index.ts";
import { messageOf, NodekeeperError, parseDuration } from "../../lib/index.ts";
import type { RecordPage } from "../../server/index.ts";
import { askAgent } from "../agent-client.ts";
import { counted } from "./wording.ts";

/** The wall time that "1h" ago was, milliseconds. Throws `invalid`. */
export function sinceOf(text: string, now: number): number {
  try {
    const ms = parseDuration(text);
    if (ms >= 0) return Math.max(Math.floor(now - ms), 0);
  } catch {
    // Told below, with the option's name.
  }
  throw new NodekeeperError(
    "invalid",
    `--since takes how long ago, such as "90s" or "24h"; got ${JSON.stringify(text.slice(0, 60))}`,
  );
}

/** Whole rounds of the running agent, oldest first, page by page; says on standard error which it can't give. */
export async function* recordsOfAgent(server: string, since: number): AsyncGenerator<RoundRecord> {
  for (let after = 0; ; ) {
    const path = `/api/v1/eviction/records?since=${since}&after=${after}`;
    const { records, tooLarge, next } = await askAgent<RecordPage>(server, path);
    for (const { id, bytes } of tooLarge) {
      const size = (bytes / 1024 / 1024).toFixed(1);
      process.stderr.write(
        `nodekeeper: warning: round ${id} is left out: with ${size} MiB it is too large for an answer\n`,
      );
    }
    yield* records;
    if (next === undefined) return;
    after = next;
  }
}

/** Whole rounds of a file that `nodekeeper rounds --records` wrote. Throws `invalid` with the line that is none. */
export async function* recordsOfFile(path: string): AsyncGenerator<RoundRecord> {
  const file = createReadStream(path, "utf8");
  const lines = createInterface({ input: file, crlfDelay: Number.POSITIVE_INFINITY });
  let number = 0;
  try {
    for await (const line of lines) {
      number++;
      if (line.trim() !== "") yield readRecord(line);
    }
  } catch (error) {
    const where = number === 0 ? "records" : `${path}, line ${number}`;
    throw new NodekeeperError("invalid", `${where}: ${messageOf(error)}`, { cause: error });
  } finally {
    lines.close();
    file.destroy();
  }
}

/** Runs what is done with a round; what fails there is the fault of a record that an agent never wrote. Throws `invalid`. */
export function withRound<T>({ id }: RoundRecord, use: () => T): T {
  try {
    return use();
  } catch (cause) {
    throw new NodekeeperError("invalid", `round ${id} is no whole record: ${messageOf(cause)}`, { cause });
  }
}

/** "3 rounds since 2026-03-01T12:00:00.000Z"; without a time for all of a file. */
export function roundsSince(count: number, since: number | undefined): string {
  return since === undefined
    ? counted(count, "round")
    : `${counted(count, "round")} since ${new Date(since).toISOString()}`;
}

function readRecord(line: string): RoundRecord {
  let record: Partial<RoundRecord> | null;
  try {
    record = JSON.parse(line) as Partial<RoundRecord> | null;
  } catch {
    throw new NodekeeperError("invalid", "not JSON; `nodekeeper rounds --records` writes such a file");
  }
  const { id, input, decision } = record ?? {};
  const isRecord =
    typeof id === "number" &&
    typeof input?.now === "number" &&
    [input.pods, input.plugins, input.tops, input.outcomes, decision?.victims].every(Array.isArray);
  if (isRecord) return record as RoundRecord;
  throw new NodekeeperError("invalid", "no recorded round; `nodekeeper rounds --records` writes them");
}
