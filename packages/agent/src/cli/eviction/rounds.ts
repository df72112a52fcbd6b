import { type Clock, codeOf, messageOf, NodekeeperError } from "@nodekeeper/core/lib";
import type { RoundSummary } from "../../eviction/index.ts";
import { type Output, printJson, printMessage } from "../output.ts";
import { openRecords, type RecordPlace } from "./open-records.ts";
import { type RecordSource, sinceOf } from "./record-source.ts";
import { roundLine } from "./round-line.ts";
import { timeOf } from "./wording.ts";

export interface RoundsOptions extends RecordPlace {
  format: "text" | "json";
  /** How long ago to start: "1h". Undefined for the last hour of an agent, and for all of a state directory or file. */
  since: string | undefined;
  follow: boolean;
  /** Prints complete records and the history of pods as lines of JSON, for `--from`. */
  records: boolean;
}

const POLL_MS = 1_000;
const AGENT_SINCE = "1h";

/** `nodekeeper rounds` */
export async function roundsCommand(
  options: RoundsOptions,
  output: Output,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const { from, format, follow } = options;
  const text = options.since ?? (from === undefined ? AGENT_SINCE : undefined);
  const since = text === undefined ? 0 : sinceOf(text, clock.now());
  if (follow && from !== undefined) {
    throw new NodekeeperError("invalid", "--follow needs a running agent and can't be combined with --from");
  }
  using opened = await openRecords(options);
  if (options.records) {
    if (follow) throw new NodekeeperError("invalid", "--records and --follow can't be combined");
    for (const lines of [opened.records(since), opened.history(since)]) {
      for await (const line of lines) {
        signal.throwIfAborted();
        printJson(output, line);
      }
    }
    return;
  }
  let shown = 0;
  const source = follow ? followedRounds(opened, since, clock, signal) : roundsOf(opened, since, signal);
  for await (const round of source) {
    if (format === "json") printJson(output, round);
    else output.write(roundLine(round, output));
    shown++;
  }
  if (shown === 0 && format === "text" && !signal.aborted) {
    output.write(`No round${since > 0 ? ` since ${timeOf(since)}` : ""} in which anything happened.\n`);
  }
}

/** The rounds of a source, oldest first, read page by page. */
async function* roundsOf(
  source: RecordSource,
  since: number,
  signal: AbortSignal,
  after = 0,
): AsyncGenerator<RoundSummary> {
  for (let last = after; !signal.aborted; ) {
    const rounds = await source.rounds(since, last);
    yield* rounds;
    const newest = rounds.at(-1);
    if (newest === undefined) return;
    last = newest.id;
  }
}

/** Like `roundsOf`, and then new rounds until aborted. After its first answer the agent may be unavailable for a time. */
async function* followedRounds(
  agent: RecordSource,
  since: number,
  clock: Clock,
  signal: AbortSignal,
): AsyncGenerator<RoundSummary> {
  let from = { since, after: 0 };
  let newestAt = since - 1;
  let hasAnswered = false;
  let isUnavailable = false;
  while (!signal.aborted) {
    try {
      for await (const round of roundsOf(agent, from.since, signal, from.after)) {
        from.after = round.id;
        newestAt = round.at;
        yield round;
      }
      hasAnswered = true;
      isUnavailable = false;
    } catch (error) {
      const mayComeBack = ["unavailable", "deadline", "stopped"].includes(codeOf(error));
      if (!hasAnswered || !mayComeBack) throw error;
      if (!isUnavailable) printMessage(`${messageOf(error)}; retrying`);
      isUnavailable = true;
      // After a restart with a new database the ids start again at 1.
      from = { since: newestAt + 1, after: 0 };
    }
    await clock.sleep(POLL_MS, signal).catch(() => {});
  }
}
