import type { RoundSummary } from "@nodekeeper/api/records";
import { missingLines, timeOf } from "@nodekeeper/api/wording";
import { NodekeeperError } from "@nodekeeper/core/lib";
import { type CommandRun, follow } from "../follow.ts";
import { type PageFormat, printItem, printJson, printMessage } from "../output.ts";
import { type RecordSource, startOf } from "./record-source.ts";
import { roundLine } from "./round-line.ts";

export interface RoundsOptions {
  format: PageFormat;
  /**
   * How long ago to start: "1h". If undefined: the last hour of an agent, or everything in a state directory or file.
   */
  since: string | undefined;
  follow: boolean;
  /** Whether to print complete records and pod history as JSON lines, for `--from`. */
  records: boolean;
}

/** `nodekeeper rounds` */
export async function roundsCommand(
  opened: RecordSource,
  options: RoundsOptions,
  run: CommandRun,
): Promise<void> {
  const { output, clock, signal } = run;
  const { format, follow: isFollowed } = options;
  const since = startOf(opened, options.since, clock.now()) ?? 0;
  if (isFollowed && !opened.isLive) {
    throw new NodekeeperError("invalid", "--follow needs a running agent and can't be combined with --from");
  }
  if (options.records) {
    if (isFollowed) throw new NodekeeperError("invalid", "--records and --follow can't be combined");
    for (const lines of [opened.records(since), opened.history(since)]) {
      for await (const line of lines) {
        signal.throwIfAborted();
        printJson(output, line);
      }
    }
    return;
  }
  let shown = 0;
  const print = (round: RoundSummary) => {
    if (format === "text") output.write(roundLine(round, output));
    else printItem(output, format, round);
    shown++;
  };
  if (isFollowed) await followRounds(opened, since, print, run);
  else for await (const round of roundsOf(opened, since, signal)) print(round);
  if (signal.aborted) return;
  const { coverage } = await opened.explainNode();
  if (shown === 0 && format === "text") {
    // Not since a time before the records begin.
    const from = Math.max(since, coverage.oldest ?? 0);
    output.write(`No recorded rounds${from > 0 ? ` since ${timeOf(from)}` : ""}.\n`);
  }
  // Without records for part of the period, the absence of rounds proves nothing.
  for (const line of missingLines(coverage, since)) printMessage(line);
}

/** Yields the rounds of a source, oldest first, read page by page. */
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

/** Prints the rounds of a running agent, then new ones until aborted. */
async function followRounds(
  agent: RecordSource,
  since: number,
  print: (round: RoundSummary) => void,
  run: CommandRun,
): Promise<void> {
  let from = { since, after: 0 };
  let newestAt = since - 1;
  const poll = async () => {
    for await (const round of roundsOf(agent, from.since, run.signal, from.after)) {
      from.after = round.id;
      newestAt = round.at;
      print(round);
    }
  };
  await follow(poll, run, () => {
    // After a restart with a new database, ids start from 1 again.
    from = { since: newestAt + 1, after: 0 };
  });
}
