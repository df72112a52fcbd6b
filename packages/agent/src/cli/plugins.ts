import { plainText } from "@nodekeeper/api/text";
import { age } from "@nodekeeper/api/wording";
import type { AgentConnection } from "./agent-connection.ts";
import { problemTable } from "./driver-problems.ts";
import { type Colour, dimLine, type Output, printAs, type TableFormat, table } from "./output.ts";
import { type PluginRow, problemOf, shownSince, shownState } from "./plugin-row.ts";
import { pluginsByName } from "./plugins-by-name.ts";

const colours: Record<string, Colour> = {
  registered: "green",
  "in-tree": "green",
  registering: "yellow",
  superseded: "yellow",
  lost: "yellow",
  failing: "red",
  unavailable: "yellow",
  refused: "red",
  failed: "red",
};

const MOST_PROBLEMS = 5;

/**
 * `nodekeeper plugins list`: prints one row per plugin, and the first problems of each driver. The wide table, JSON
 * and YAML have one row per socket.
 */
export async function pluginsCommand(
  agent: AgentConnection,
  format: TableFormat,
  output: Output,
  now: number,
): Promise<void> {
  const rows = await agent.get("plugins");
  printAs(output, format, rows, () => page(rows, format === "wide", output, now));
}

function page(all: readonly PluginRow[], wide: boolean, output: Output, now: number): string {
  const rows = wide ? all : pluginsByName(all);
  if (rows.length === 0) return "No plugins: none has registered, and no in-tree plugin is enabled.\n";
  const socket = wide ? ["SOCKET"] : [];
  const headings = ["NAME", "TYPE", "STATE", "SINCE", "CONTENT", "CHANGED", ...socket, "MESSAGE"];
  const cells = rows.map((row) => [
    row.name || "-",
    row.type || "-",
    shownState(row),
    ageOf(shownSince(row), now),
    row.contentBytes > 0 ? `${row.contentBytes} B` : "-",
    ageOf(row.contentAt, now),
    ...(wide ? [row.registrationSocket ?? "-"] : []),
    problemOf(row) || "-",
  ]);
  const plugins = table(output, headings, cells, (at, column) =>
    column === 2 ? colours[shownState(rows[at]!)] : undefined,
  );
  return [plugins, ...all.map((row) => problemsOfDriver(row, output, now))].join("");
}

// Empty if there are none.
function problemsOfDriver({ name, driverProblems = [] }: PluginRow, output: Output, now: number): string {
  if (driverProblems.length === 0) return "";
  const more = driverProblems.length - MOST_PROBLEMS;
  return [
    `\nPROBLEMS OF ${plainText(name)}: ${driverProblems.length}\n`,
    problemTable(driverProblems.slice(0, MOST_PROBLEMS), output, now),
    ...(more > 0 ? [dimLine(output, `and ${more} more: nodekeeper plugins list -o json`)] : []),
  ].join("");
}

function ageOf(at: number | undefined, now: number): string {
  return at === undefined || at === null ? "-" : age(now - at);
}
