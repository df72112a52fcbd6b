import { type ContainerStatus, PodLifecycleClient, type PodStatus } from "@nodekeeper/sdk";
import { age, type Colour, type Output, paint, printJson, printMessage, table } from "./output.ts";

export interface PodsOptions {
  socket: string;
  format: "table" | "wide" | "json";
  /** Whether to keep running and print each pod again when it changes. */
  watch: boolean;
  namespace: string | undefined;
}

const HEADINGS = ["NAMESPACE", "NAME", "RUNNING", "STATE", "RESTARTS", "AGE", "IP"];
const WIDE_HEADINGS = [...HEADINGS, "UID", "SANDBOX", "CONTAINERS"];

const colours: Record<string, Colour> = { Running: "green", Completed: "dim", Unreadable: "red" };

/** `nodekeeper pods`: prints one row for each pod. */
export async function podsCommand(
  options: PodsOptions,
  output: Output,
  now: () => number,
  signal: AbortSignal,
): Promise<void> {
  const { socket, format, namespace } = options;
  using client = new PodLifecycleClient({ socket });
  const selector = namespace ? { namespace } : {};
  if (options.watch) return await watchPods(client, options, output, now, signal);
  const { pods, listedAt, problems } = await client.listPods({ selector }, signal);
  const listed = age(now() - listedAt);
  if (problems.length > 0) {
    printMessage(
      `the container runtime last listed its pods ${listed} ago; the states below may be out of date`,
    );
    for (const problem of problems) printMessage(`container runtime: ${problem}`);
  }
  if (format === "json") printJson(output, pods, 2);
  else if (pods.length === 0 && problems.length > 0) output.write("The last list of pods was empty.\n");
  else if (pods.length === 0) output.write("The container runtime has no pods.\n");
  else output.write(podTable(pods, output, format === "wide", now()));
}

async function watchPods(
  client: PodLifecycleClient,
  { format, namespace }: PodsOptions,
  output: Output,
  now: () => number,
  signal: AbortSignal,
): Promise<void> {
  const selector = namespace ? { namespace } : {};
  const wide = format === "wide";
  let isFirst = true;
  const print = (pods: readonly PodStatus[]) => {
    if (format === "json") for (const pod of pods) printJson(output, pod);
    else {
      const text = podTable(pods, output, wide, now());
      output.write(isFirst ? text : text.slice(text.indexOf("\n") + 1));
    }
    isFirst = false;
  };
  const watching = client.watch(
    {
      selector,
      withStatus: true,
      onRetry: ({ message }) => printMessage(`${message}; retrying`),
    },
    signal,
  );
  for await (const item of watching) {
    if (item.kind === "snapshot") print(item.pods.flatMap(({ status }) => status ?? []));
    else if (item.kind === "event") print([item.event.status ?? removedPod(item.event.pod)]);
  }
}

function removedPod(pod: { uid: string; namespace: string; name: string }): PodStatus {
  return { ...pod, ips: [], sandboxes: [], containers: [], observedAt: 0, error: "" };
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

function newestOfEachName(containers: readonly ContainerStatus[]): ContainerStatus[] {
  const newest = new Map<string, ContainerStatus>();
  for (const container of containers) {
    const known = newest.get(container.name);
    if (!known || (container.createdAt ?? 0) > (known.createdAt ?? 0)) newest.set(container.name, container);
  }
  return [...newest.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** A dimmed line between rows of output. */
export function dimLine(output: Output, text: string): string {
  return `${paint(output, "dim", text)}\n`;
}
