import { plainText } from "@nodekeeper/api/text";
import { age, counted, evictionModes } from "@nodekeeper/api/wording";
import { messageOf } from "@nodekeeper/core/lib";
import type { FleetAnswer } from "../fleet.ts";
import { type Output, paint, table } from "../output.ts";
import type { NamedProblem, NodeStatus } from "./node-status.ts";

const MOST_PROBLEMS = 50;

/** `status` of all nodes, for machine-readable formats. */
export interface FleetSummary {
  nodes: NodeStatus[];
  /** Nodes whose agent did not answer, and nodes without an agent. */
  unanswered: { node: string; hasAgent: boolean; message: string }[];
  /** Number of agents by version. */
  versions: Record<string, number>;
}

export function fleetSummary(answers: readonly FleetAnswer<NodeStatus>[]): FleetSummary {
  const nodes = answers.flatMap(({ answer }) => answer ?? []);
  const versions = [...Map.groupBy(nodes, ({ version }) => version)].sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    nodes,
    unanswered: answers
      .filter(({ answer }) => answer === undefined)
      .map(({ node, hasAgent, error }) => ({ node, hasAgent, message: messageOf(error) })),
    versions: Object.fromEntries(versions.map(([version, some]) => [version, some.length])),
  };
}

export interface FleetPrinting {
  output: Output;
  /** Wall-clock time, milliseconds. */
  now: number;
  /** Whether to print the names of evicted pods and conditions instead of their counts. */
  isWide: boolean;
}

/** The page of `status` for all nodes: one row per node, then the problems by node, then the totals. */
export function fleetPage(answers: readonly FleetAnswer<NodeStatus>[], printing: FleetPrinting): string {
  const { output } = printing;
  const problems = answers.flatMap(problemsOf);
  const shown = problems.slice(0, MOST_PROBLEMS);
  const more = problems.length - shown.length;
  const headings = [
    "NODE",
    "AGENT",
    "VERSION",
    "AGE",
    "PLUGINS",
    "FAILING",
    "REFUSED",
    "EVICTION",
    "EVICTED",
    "DRY-RUN",
    "CONDITIONS",
  ];
  const rows = answers.map((answer) => rowOf(answer, printing));
  return [
    table(output, headings, rows, (row, column) => colourOf(answers[row]!, column)),
    shown.length > 0 ? `\n${table(output, ["NODE", "WHAT", "NAME", "MESSAGE"], shown)}` : "",
    more > 0 ? `and ${counted(more, "more problem")}; -o json prints all\n` : "",
    `\n${summaryLine(answers, output)}\n`,
  ].join("");
}

function rowOf(
  { node, answer, hasAgent }: FleetAnswer<NodeStatus>,
  { now, isWide }: FleetPrinting,
): string[] {
  if (!answer) return [node, hasAgent ? "no answer" : "none", ...Array(9).fill("-")];
  const { version, startedAt, plugins, failingPlugins, refusedContent, unpublished, eviction } = answer;
  const amountOf = (pods: readonly string[]) =>
    isWide && pods.length > 0 ? pods.join(",") : String(pods.length);
  return [
    node,
    answer.failingChecks.length === 0 ? "ready" : "not ready",
    version,
    age(now - startedAt),
    String(plugins),
    String(failingPlugins.length),
    String(refusedContent.length + unpublished.length),
    eviction ? evictionModes[eviction.mode] : "off",
    ...(eviction
      ? [eviction.evicted, eviction.dryRunEvicted, eviction.conditions].map(amountOf)
      : ["-", "-", "-"]),
  ];
}

function colourOf({ answer }: FleetAnswer<NodeStatus>, column: number) {
  if (column === 1) return answer?.failingChecks.length === 0 ? "green" : "red";
  if (!answer) return undefined;
  if (column === 5 && answer.failingPlugins.length > 0) return "red";
  if (column === 6 && answer.refusedContent.length + answer.unpublished.length > 0) return "red";
  return column === 10 && (answer.eviction?.conditions.length ?? 0) > 0 ? "yellow" : undefined;
}

function problemsOf({ node, answer, hasAgent, error }: FleetAnswer<NodeStatus>): string[][] {
  if (!answer) return hasAgent ? [[node, "no answer", "-", messageOf(error)]] : [];
  const rows = (what: string, problems: readonly NamedProblem[]) =>
    problems.map(({ name, message }) => [node, what, name, message || "-"]);
  return [
    ...rows("not ready", answer.failingChecks),
    ...rows("failing", answer.failingPlugins),
    ...rows("refused", answer.refusedContent),
    ...rows("not written", answer.unpublished),
  ];
}

function summaryLine(answers: readonly FleetAnswer<NodeStatus>[], output: Output): string {
  const { nodes, unanswered, versions } = fleetSummary(answers);
  const without = unanswered.filter(({ hasAgent }) => !hasAgent).length;
  const silent = unanswered.length - without;
  const evicted = nodes.reduce((sum, { eviction }) => sum + (eviction?.evicted.length ?? 0), 0);
  const areMissing = nodes.some(({ eviction }) => eviction !== undefined && eviction.missing.length > 0);
  const shares = Object.entries(versions).map(([version, count]) => plainText(`${version} on ${count}`));
  const parts = [
    counted(answers.length, "node"),
    silent > 0 ? paint(output, "red", `${silent} without an answer`) : "all agents answered",
    without > 0 ? `${without} without an agent` : "",
    `${counted(evicted, "eviction")}${areMissing ? " recorded" : ""} in the last hour`,
    shares.length > 0 ? `versions: ${shares.join(", ")}` : "",
  ];
  return parts.filter((part) => part !== "").join("; ");
}
