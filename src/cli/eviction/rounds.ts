import type { RoundSummary } from "../../eviction/index.ts";
import { type Clock, codeOf, messageOf, NodekeeperError } from "../../lib/index.ts";
import { askAgent } from "../agent-client.ts";
import type { Output } from "../output.ts";
import { plainJson } from "../plain-text.ts";
import { recordsOfAgent, sinceOf } from "./record-source.ts";
import { roundLine } from "./round-line.ts";
import { timeOf } from "./wording.ts";

export interface RoundsOptions {
  /** "host:port" of the agent's status server. */
  server: string;
  format: "text" | "json";
  /** How long ago to begin: "1h". */
  since: string;
  follow: boolean;
  /** Whole records as lines of JSON, for `replay` elsewhere. */
  records: boolean;
}

const POLL_MS = 1_000;

/** `nodekeeper rounds` */
export async function roundsCommand(
  options: RoundsOptions,
  output: Output,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const { server, format, follow } = options;
  const since = sinceOf(options.since, clock.now());
  if (options.records) {
    if (follow) throw new NodekeeperError("invalid", "--records and --follow don't go together");
    for await (const record of recordsOfAgent(server, since)) {
      signal.throwIfAborted();
      output.write(`${plainJson(record)}\n`);
    }
    return;
  }
  let shown = 0;
  const source = follow ? followedRounds(server, since, clock, signal) : roundsOfAgent(server, since, signal);
  for await (const round of source) {
    output.write(format === "json" ? `${plainJson(round)}\n` : roundLine(round, output));
    shown++;
  }
  if (shown === 0 && format === "text" && !signal.aborted) {
    output.write(`No round since ${timeOf(since)} in which anything happened.\n`);
  }
}

/** Rounds that the agent has now, oldest first; it gives some at once. */
async function* roundsOfAgent(
  server: string,
  since: number,
  signal: AbortSignal,
  after = 0,
): AsyncGenerator<RoundSummary> {
  for (let last = after; !signal.aborted; ) {
    const path = `/api/v1/eviction/rounds?since=${since}&after=${last}`;
    const rounds = await askAgent<RoundSummary[]>(server, path);
    yield* rounds;
    const newest = rounds.at(-1);
    if (newest === undefined) return;
    last = newest.id;
  }
}

/** The same and those to come, until aborted. Once the agent has answered, it may go away and come back. */
async function* followedRounds(
  server: string,
  since: number,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<RoundSummary> {
  let from = { since, after: 0 };
  let newestAt = since - 1;
  let hasAnswered = false;
  let isAway = false;
  while (!signal.aborted) {
    try {
      for await (const round of roundsOfAgent(server, from.since, signal, from.after)) {
        from.after = round.id;
        newestAt = round.at;
        yield round;
      }
      hasAnswered = true;
      isAway = false;
    } catch (error) {
      const mayComeBack = ["unavailable", "deadline", "stopped"].includes(codeOf(error));
      if (!hasAnswered || !mayComeBack) throw error;
      if (!isAway) process.stderr.write(`nodekeeper: ${messageOf(error)}; trying again\n`);
      isAway = true;
      // It may come back with another database, whose ids begin anew.
      from = { since: newestAt + 1, after: 0 };
    }
    await clock.sleep(POLL_MS, signal).catch(() => {});
  }
}
