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

/** Selects the marks since a time with an id greater than `after`. */
interface Position {
  since: number;
  after: number;
}

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
  let position: Position = { since: from, after: 0 };
  let newest: Mark | undefined;
  let wasInterrupted = false;
  let missing: string[] = [];
  /** Prints the available marks. */
  const printNew = async () => {
    if (wasInterrupted && newest) position = await positionAfter(agent, newest, position);
    wasInterrupted = false;
    for (let hasMore = true; hasMore && !signal.aborted; ) {
      const { items, next, ...coverage } = await agent.get("marks", position);
      missing = missingLines(coverage, from);
      for (const mark of items) {
        if (format === "text") output.write(lineOf(mark, output));
        else printItem(output, format, mark);
        newest = mark;
        position.after = mark.id;
      }
      hasMore = next !== undefined;
    }
  };
  const onUnavailable = () => {
    wasInterrupted = true;
  };
  if (isFollowed) return await follow(printNew, run, onUnavailable);
  await printNew();
  if (format === "text" && !newest) output.write(`Nothing recorded since ${timeOf(from)}.\n`);
  for (const line of missing) printMessage(plainText(line, LONGEST_TITLE));
}

/**
 * Returns the position from which to resume after the agent was unavailable. IDs restart at 1 if it has a new database.
 * Comparing times is not sufficient: a mark may be older than one recorded before it.
 */
async function positionAfter(
  agent: AgentConnection,
  { id, at }: Mark,
  position: Position,
): Promise<Position> {
  const { items } = await agent.get("marks", { since: at, after: id - 1, limit: 1 });
  const isSame = items.some((mark) => mark.id === id && mark.at === at);
  return isSame ? position : { since: at + 1, after: 0 };
}

function lineOf({ at, kind, title, round }: Mark, output: Output): string {
  const text = plainText(title, LONGEST_TITLE);
  const colour = colours[kind];
  const about = round === undefined ? "" : ` (round ${round})`;
  return `${timeOf(at)}  ${colour ? paint(output, colour, text) : text}${about}\n`;
}
