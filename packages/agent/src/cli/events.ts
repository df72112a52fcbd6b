import { NodekeeperError, parseDuration } from "@nodekeeper/core/lib";
import { PodLifecycleClient, type PodLifecycleEvent, type PodLifecycleItem } from "@nodekeeper/sdk";
import { type Colour, type Output, paint, printJson, printMessage } from "./output.ts";
import { plainText } from "./plain-text.ts";
import { dimLine } from "./pods.ts";

export interface EventsOptions {
  socket: string;
  format: "text" | "json";
  /** Whether to keep printing new events. */
  follow: boolean;
  /** Where to start: a cursor, or how long ago ("10m"). */
  since: string;
  /** "namespace/name". */
  pod: string | undefined;
}

const colours: Partial<Record<PodLifecycleEvent["type"], Colour>> = {
  ContainerStarted: "green",
  ContainerDied: "red",
  ContainerRemoved: "dim",
};

/** `nodekeeper events`: prints pod lifecycle events in order. */
export async function eventsCommand(
  options: EventsOptions,
  output: Output,
  now: () => number,
  signal: AbortSignal,
): Promise<void> {
  const { socket, follow, format, pod, since } = options;
  const selector = pod === undefined ? {} : podSelector(pod);
  using client = new PodLifecycleClient({ socket });
  const watching = client.watch(
    {
      ...startPosition(since, now()),
      selector,
      stopAtEnd: !follow,
      onRetry: ({ message }) => printMessage(`${message}; retrying`),
    },
    signal,
  );
  let last = "";
  for await (const item of watching) {
    last = item.cursor;
    if (format === "json") {
      if (item.kind !== "bookmark") printJson(output, item);
    } else output.write(textOf(item, output));
  }
  if (format === "text" && last && output.isTerminal) {
    output.write(dimLine(output, `To continue from here: --since ${last}`));
  }
}

function startPosition(since: string, now: number): { cursor: string } | { since: number } {
  if (/^[0-9a-z]{1,32}-[0-9]+$/.test(since)) return { cursor: since };
  try {
    return { since: now - parseDuration(since) };
  } catch {
    throw new NodekeeperError(
      "invalid",
      `--since takes a duration such as "10m", or a cursor printed by an earlier run; got "${since}"`,
    );
  }
}

function podSelector(text: string): { namespace: string; name: string } {
  const [namespace, name, ...rest] = text.split("/");
  if (namespace && name && rest.length === 0) return { namespace, name };
  throw new NodekeeperError("invalid", `--pod takes namespace/name; got "${text}"`);
}

function textOf(item: PodLifecycleItem, output: Output): string {
  if (item.kind === "event") return eventLine(item.event, output);
  if (item.kind === "bookmark") return "";
  const missed = item.missed === undefined ? "some events are" : `${item.missed} events are`;
  const pods = `${item.pods.length} pods on the node now`;
  return item.why === "begin"
    ? dimLine(output, pods)
    : dimLine(output, `${missed} no longer retained in the agent's event log; ${pods}`);
}

function eventLine(event: PodLifecycleEvent, output: Output): string {
  const { pod, container, exitCode, reason } = event;
  const details = [
    exitCode === undefined ? undefined : `exit code ${exitCode}`,
    reason && !(reason === "Completed" && exitCode === 0) ? reason : undefined,
  ].filter((detail) => detail !== undefined);
  const what = container
    ? `${container.kind === "sandbox" ? "sandbox" : container.name} ${container.id.slice(0, 12)}`
    : "";
  const colour = colours[event.type];
  const type = event.type.padEnd(16);
  const words = [
    new Date(event.at).toISOString(),
    colour ? paint(output, colour, type) : type,
    plainText(`${pod.namespace}/${pod.name}`),
    plainText(what),
    plainText(details.join(", ")),
  ];
  return `${words.filter((word) => word !== "").join("  ")}\n`;
}
