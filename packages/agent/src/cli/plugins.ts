import { age } from "@nodekeeper/api/wording";
import type { AgentConnection } from "./agent-connection.ts";
import { type Colour, type Output, printAs, type TableFormat, table } from "./output.ts";
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

/** `nodekeeper plugins list`: prints one row per plugin, or per socket in the wide table and other formats. */
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
  return table(output, headings, cells, (at, column) =>
    column === 2 ? colours[shownState(rows[at]!)] : undefined,
  );
}

function ageOf(at: number | undefined, now: number): string {
  return at === undefined || at === null ? "-" : age(now - at);
}
