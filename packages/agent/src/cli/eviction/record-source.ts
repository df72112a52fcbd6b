import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { RecordedStateUnreadable } from "@nodekeeper/api/errors";
import type { NodeExplanation, PodExplanation, RoundRecord, RoundSummary } from "@nodekeeper/api/records";
import { counted, timeOf } from "@nodekeeper/api/wording";
import { messageOf, NodekeeperError, parseDuration } from "@nodekeeper/core/lib";
import type { HistoryLine } from "../../eviction/index.ts";

/** Reads eviction records. Times are wall-clock milliseconds. */
export interface RecordSource extends Disposable {
  /** Whether it is a running agent, which keeps recording. */
  readonly isLive: boolean;
  explainPod(pod: string): Promise<PodExplanation>;
  explainNode(): Promise<NodeExplanation>;
  /** Returns a page of rounds since a time with an id greater than `after`, oldest first; empty at the end. */
  rounds(since: number, after: number): Promise<RoundSummary[]>;
  /** Yields complete rounds since a time, oldest first. Skipped rounds are reported on standard error. */
  records(since: number): AsyncGenerator<RoundRecord>;
  /** Yields the history of the node and its pods since a time. */
  history(since: number): AsyncGenerator<HistoryLine>;
}

/** Returns `now` minus a duration such as "1h", wall-clock milliseconds. Throws `invalid`, naming the option. */
export function sinceOf(text: string, now: number, option = "--since"): number {
  try {
    const ms = parseDuration(text);
    if (ms >= 0) return Math.max(Math.floor(now - ms), 0);
  } catch {
    // Reported below, with the option's name.
  }
  throw new NodekeeperError(
    "invalid",
    `${option} must be a duration such as "90s" or "24h"; got ${JSON.stringify(text.slice(0, 60))}`,
  );
}

/** Returns where to start: `--since`, the last hour of an agent, or undefined for all of a state directory or file. */
export function startOf(source: RecordSource, since: string | undefined, now: number): number | undefined {
  const text = since ?? (source.isLive ? "1h" : undefined);
  return text === undefined ? undefined : sinceOf(text, now);
}

/**
 * Yields the complete rounds of a file written by `nodekeeper rounds --records`. Throws `invalid` with the malformed
 * line.
 */
export async function* recordsOfFile(path: string): AsyncGenerator<RoundRecord> {
  for await (const line of linesOfFile(path)) if (!("kind" in line)) yield line;
}

/** Like `recordsOfFile`, with the history of the node and its pods. */
export async function* linesOfFile(path: string): AsyncGenerator<RoundRecord | HistoryLine> {
  const file = createReadStream(path, "utf8");
  const lines = createInterface({ input: file, crlfDelay: Number.POSITIVE_INFINITY });
  let number = 0;
  try {
    for await (const line of lines) {
      number++;
      if (line.trim() !== "") yield readLine(line);
    }
  } catch (error) {
    const where = number === 0 ? "records" : `${path}, line ${number}`;
    throw new RecordedStateUnreadable(
      { problem: `${where}: ${messageOf(error)}` },
      { cause: error, code: "invalid" },
    );
  } finally {
    lines.close();
    file.destroy();
  }
}

/** Runs `use` on a round. Errors are attributed to a malformed record. Throws `invalid`. */
export function withRound<T>({ id }: RoundRecord, use: () => T): T {
  try {
    return use();
  } catch (error) {
    throw new RecordedStateUnreadable(
      { problem: `round ${id} is incomplete or malformed: ${messageOf(error)}` },
      { cause: error, code: "invalid" },
    );
  }
}

/** "3 rounds since 2026-03-01T12:00:00.000Z"; "3 rounds" without a time. */
export function roundsSince(count: number, since: number | undefined): string {
  return since === undefined ? counted(count, "round") : `${counted(count, "round")} since ${timeOf(since)}`;
}

function readLine(line: string): RoundRecord | HistoryLine {
  let record: Partial<RoundRecord> | null;
  try {
    record = JSON.parse(line) as Partial<RoundRecord> | null;
  } catch {
    throw new NodekeeperError("invalid", "not JSON; expected output of `nodekeeper rounds --records`");
  }
  if (isHistoryLine(record)) return record;
  const { id, input, decision } = record ?? {};
  const isRecord =
    typeof id === "number" &&
    typeof input?.now === "number" &&
    [input.pods, input.plugins, input.tops, input.outcomes, decision?.victims].every(Array.isArray);
  if (isRecord) return record as RoundRecord;
  throw new NodekeeperError(
    "invalid",
    "not a recorded round; expected output of `nodekeeper rounds --records`",
  );
}

function isHistoryLine(line: unknown): line is HistoryLine {
  const { kind } = (line ?? {}) as { kind?: unknown };
  return kind === "pod" || kind === "node";
}
