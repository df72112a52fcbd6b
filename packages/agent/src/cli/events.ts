import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { plainText } from "@nodekeeper/api/text";
import { counted, timeOf } from "@nodekeeper/api/wording";
import { NodekeeperError, parseDuration } from "@nodekeeper/core/lib";
import type { AgentConnection } from "./agent-connection.ts";
import { type CommandRun, follow } from "./follow.ts";
import { type Colour, dimLine, type Output, type PageFormat, paint, printItem } from "./output.ts";
import { type PodSelector, selectorText } from "./pod-name.ts";
import { printRuntimeProblems } from "./runtime-problems.ts";

export interface EventsOptions {
  format: PageFormat;
  /** Whether to keep printing new events. */
  isFollowed: boolean;
  /** Where to start: a cursor, or how long ago ("10m"). */
  since: string;
  selector: PodSelector;
}

type Item = ApiAnswers["events"]["items"][number];
type Event = Extract<Item, { kind: "event" }>["event"];

const colours: Partial<Record<Event["type"], Colour>> = {
  ContainerStarted: "green",
  ContainerDied: "red",
  ContainerRemoved: "dim",
};

/** `events`: prints pod lifecycle events in order. */
export async function eventsCommand(
  agent: AgentConnection,
  { format, isFollowed, since, selector }: EventsOptions,
  run: CommandRun,
): Promise<void> {
  const { output, clock, signal } = run;
  const start: { cursor?: string; since?: number } = startPosition(since, clock.now());
  let position = start;
  let shown = 0;
  let hasProblems = false;
  /** Prints the available events, up to the end of the log. */
  const printNew = async () => {
    for (let isEnd = false; !isEnd && !signal.aborted; ) {
      const { items, cursor, end, ...runtime } = await agent.get("events", { ...position, ...selector });
      // Only once until the runtime recovers.
      if (!hasProblems) printRuntimeProblems(runtime, "events may be missing", clock);
      hasProblems = runtime.problems.length > 0;
      for (const item of items) {
        if (format === "text") output.write(textOf(item, output));
        else printItem(output, format, item);
      }
      shown += items.length;
      position = { cursor };
      isEnd = end;
    }
  };
  if (isFollowed) return await follow(printNew, run);
  await printNew();
  if (format !== "text" || signal.aborted) return;
  if (shown === 0) {
    const from = start.since === undefined ? since : await sinceText(agent, start.since);
    output.write(
      from === undefined
        ? "The event log has no events yet.\n"
        : `No events of ${selectorText(selector)} since ${from}.\n`,
    );
  }
  if (output.isTerminal && position.cursor) {
    output.write(dimLine(output, `To continue from here: --since ${plainText(position.cursor)}`));
  }
}

// Returns the time since which the log can have events, in words. Undefined if it is empty.
async function sinceText(agent: AgentConnection, since: number): Promise<string | undefined> {
  const { items } = await agent.get("events", { since: 0, limit: 1 });
  const [first] = items;
  if (!first) return undefined;
  if (first.kind !== "event" || first.event.at <= since) return timeOf(since);
  return `${timeOf(first.event.at)}, when the event log begins`;
}

function startPosition(since: string, now: number): { cursor: string } | { since: number } {
  if (/^[0-9a-z]{1,32}-[0-9]+$/.test(since)) return { cursor: since };
  try {
    return { since: Math.max(0, Math.round(now - parseDuration(since))) };
  } catch {
    throw new NodekeeperError(
      "invalid",
      `--since must be a duration such as "10m" or a cursor printed by an earlier run; got "${since}"`,
    );
  }
}

function textOf(item: Item, output: Output): string {
  if (item.kind === "event") return eventLine(item.event, output);
  const missed = item.missed === undefined ? "some events" : counted(item.missed, "event");
  const pods = counted(item.pods.length, "pod");
  return dimLine(output, `${missed} no longer retained in the agent's event log; ${pods} on the node now`);
}

function eventLine({ type, at, pod, container, exitCode, reason }: Event, output: Output): string {
  const details = [
    exitCode === undefined ? undefined : `exit code ${exitCode}`,
    reason && !(reason === "Completed" && exitCode === 0) ? reason : undefined,
  ].filter((detail) => detail !== undefined);
  const what = container
    ? `${container.kind === "sandbox" ? "sandbox" : container.name} ${container.id.slice(0, 12)}`
    : "";
  const colour = colours[type];
  const name = type.padEnd(16);
  const words = [
    timeOf(at),
    colour ? paint(output, colour, name) : name,
    plainText(`${pod.namespace}/${pod.name}`),
    plainText(what),
    plainText(details.join(", ")),
  ];
  return `${words.filter((word) => word !== "").join("  ")}\n`;
}
