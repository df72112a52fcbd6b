import { newestOfEachName } from "@nodekeeper/api/lifecycle";
import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { age } from "@nodekeeper/api/wording";
import type { AgentConnection } from "./agent-connection.ts";
import { type CommandRun, follow } from "./follow.ts";
import { type Colour, type Output, printAs, printItem, type TableFormat, table } from "./output.ts";
import { type PodSelector, selectorText } from "./pod-name.ts";
import { printRuntimeProblems } from "./runtime-problems.ts";

export interface PodsOptions {
  format: TableFormat;
  /** Whether to keep running and print each pod again when it changes. */
  isWatched: boolean;
  selector: PodSelector;
}

type PodPage = ApiAnswers["pods"];
type PodStatus = PodPage["items"][number];
type ContainerStatus = PodStatus["containers"][number];

const HEADINGS = ["NAMESPACE", "NAME", "RUNNING", "STATE", "RESTARTS", "AGE", "IP"];
const WIDE_HEADINGS = [...HEADINGS, "UID", "SANDBOX", "CONTAINERS"];

const colours: Record<string, Colour> = { Running: "green", Completed: "dim", Unreadable: "red" };

/** `pods`: prints one row for each pod. */
export async function podsCommand(
  agent: AgentConnection,
  options: PodsOptions,
  run: CommandRun,
): Promise<void> {
  const { format, selector } = options;
  const { output, clock } = run;
  if (options.isWatched) return await watchPods(agent, options, run);
  const page = await readPods(agent, selector);
  const { items: pods, problems } = page;
  printRuntimeProblems(page, "the states below may be out of date", clock);
  printAs(output, format, pods, () => {
    if (pods.length > 0) return podTable(pods, output, format === "wide", clock.now());
    const found = problems.length > 0 ? "The last relist found" : "The container runtime has";
    return `${found} no ${selectorText(selector)}.\n`;
  });
}

/** Reads all pages. */
async function readPods(agent: AgentConnection, selector: PodSelector): Promise<PodPage> {
  const items: PodStatus[] = [];
  for (let after: string | undefined; ; ) {
    const page: PodPage = await agent.get("pods", { ...selector, continue: after });
    items.push(...page.items);
    if (page.continue === undefined) return { ...page, items };
    after = page.continue;
  }
}

async function watchPods(
  agent: AgentConnection,
  { format, selector }: PodsOptions,
  run: CommandRun,
): Promise<void> {
  const { output, clock, signal } = run;
  let known = new Map<string, { pod: PodStatus; key: string }>();
  let cursor: string | undefined;
  let isFirst = true;
  const print = (pods: readonly PodStatus[]) => {
    if (format === "json" || format === "yaml") for (const pod of pods) printItem(output, format, pod);
    else if (pods.length > 0) {
      const text = podTable(pods, output, format === "wide", clock.now());
      output.write(isFirst ? text : text.slice(text.indexOf("\n") + 1));
      isFirst = false;
    }
  };
  /** Returns whether the selected pods may have changed. One response searches only part of the event log. */
  const mayHaveChanged = async () => {
    for (let isEnd = false; cursor !== undefined && !isEnd && !signal.aborted; ) {
      const page: ApiAnswers["events"] = await agent.get("events", { ...selector, cursor, limit: 1 });
      if (page.items.length > 0) return true;
      ({ cursor, end: isEnd } = page);
    }
    return cursor === undefined;
  };
  const poll = async () => {
    if (!(await mayHaveChanged())) return;
    const page = await readPods(agent, selector);
    const now = new Map(page.items.map((pod) => [pod.uid, { pod, key: keyOf(pod) }]));
    const removed = [...known.values()].filter(({ pod }) => !now.has(pod.uid));
    const changed = [...now.values()].filter(({ pod, key }) => known.get(pod.uid)?.key !== key);
    print([...removed.map(({ pod }) => removedPod(pod)), ...changed.map(({ pod }) => pod)]);
    known = now;
    cursor = page.cursor;
  };
  await follow(poll, run);
}

// A newer observation alone is not a change.
function keyOf({ observedAt: _, ...pod }: PodStatus): string {
  return JSON.stringify(pod);
}

function removedPod({ uid, namespace, name, observedAt }: PodStatus): PodStatus {
  return { uid, namespace, name, ips: [], sandboxes: [], containers: [], observedAt };
}

function podTable(pods: readonly PodStatus[], output: Output, wide: boolean, now: number): string {
  const rows = pods.map((pod) => podRow(pod, wide, now));
  return table(output, wide ? WIDE_HEADINGS : HEADINGS, rows, (at, column) =>
    column === 3 ? (colours[rows[at]![3]!] ?? "yellow") : undefined,
  );
}

function podRow(pod: PodStatus, wide: boolean, now: number): string[] {
  const newest = newestOfEachName(pod.containers);
  const running = newest.filter(({ state }) => state === "running").length;
  const born = Math.min(...[...pod.sandboxes, ...pod.containers].flatMap(({ createdAt }) => createdAt ?? []));
  const row = [
    pod.namespace || "-",
    pod.name || pod.uid,
    `${running}/${newest.length}`,
    stateOf(pod, newest),
    String(newest.reduce((sum, { attempt }) => sum + attempt, 0)),
    Number.isFinite(born) ? age(now - born) : "-",
    pod.ips.join(",") || "-",
  ];
  if (!wide) return row;
  const names = newest.map(({ name, state, image }) => `${name}(${state}${image ? `, ${image}` : ""})`);
  return [...row, pod.uid, pod.sandboxes[0]?.id.slice(0, 13) ?? "-", names.join(" ") || "-"];
}

/** A pod's state in one word, derived from the runtime's container states. */
function stateOf(pod: PodStatus, newest: readonly ContainerStatus[]): string {
  if (pod.error) return "Unreadable";
  if (pod.sandboxes.length === 0 && newest.length === 0) return "Removed";
  const failed = newest.find(({ state, exitCode }) => state === "exited" && exitCode !== 0);
  if (failed)
    return failed.reason && failed.reason !== "Completed" ? failed.reason : `Exit:${failed.exitCode}`;
  if (newest.some(({ state }) => state === "unknown")) return "Unknown";
  if (newest.some(({ state }) => state === "created")) return "Starting";
  if (newest.length > 0 && newest.every(({ state }) => state === "exited")) return "Completed";
  if (pod.sandboxes[0]?.state !== "running") return "NotReady";
  return newest.length === 0 ? "Sandbox" : "Running";
}
