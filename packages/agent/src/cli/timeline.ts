import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { plainText } from "@nodekeeper/api/text";
import { missingLines, timeOf } from "@nodekeeper/api/wording";
import type { AgentConnection } from "./agent-connection.ts";
import { sinceOf } from "./eviction/record-source.ts";
import { type CommandRun, follow } from "./follow.ts";
import { type Colour, type Output, type PageFormat, paint, printItem, printMessage } from "./output.ts";

export interface TimelineOptions {
  format: PageFormat;
  /** Whether to keep printing new marks. */
  isFollowed: boolean;
  /** How long ago to start: "10m". */
  since: string;
}

type Mark = ApiAnswers["marks"]["items"][number];

const LONGEST_TITLE = 500;
const colours: Partial<Record<Mark["kind"], Colour>> = {
  agentStartedAfterKill: "red",
  pluginLost: "red",
  pluginRefused: "red",
  conditionSet: "yellow",
  taintAdded: "yellow",
  evictionSelected: "red",
  evictionEnded: "red",
};

/** `timeline`: prints marks in order. */
export async function timelineCommand(
  agent: AgentConnection,
  { format, isFollowed, since }: TimelineOptions,
  run: CommandRun,
): Promise<void> {
  const { output, clock, signal } = run;
  const from = sinceOf(since, clock.now());
  let last = 0;
  let missing: string[] = [];
  /** Prints the available marks. */
  const printNew = async () => {
    for (let hasMore = true; hasMore && !signal.aborted; ) {
      const { items, next, ...coverage } = await agent.get("marks", { since: from, after: last });
      missing = missingLines(coverage, from);
      for (const mark of items) {
        if (format === "text") output.write(lineOf(mark, output));
        else printItem(output, format, mark);
        last = mark.id;
      }
      hasMore = next !== undefined;
    }
  };
  if (isFollowed) return await follow(printNew, run);
  await printNew();
  if (format === "text" && last === 0) output.write(`Nothing recorded since ${timeOf(from)}.\n`);
  for (const line of missing) printMessage(plainText(line, LONGEST_TITLE));
}

function lineOf({ at, kind, title, round }: Mark, output: Output): string {
  const text = plainText(title, LONGEST_TITLE);
  const colour = colours[kind];
  const about = round === undefined ? "" : ` (round ${round})`;
  return `${timeOf(at)}  ${colour ? paint(output, colour, text) : text}${about}\n`;
}
