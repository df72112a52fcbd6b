import { age } from "@nodekeeper/api/wording";
import type { AgentConnection } from "./agent-connection.ts";
import { type Colour, type Output, printValue, type TableFormat, table } from "./output.ts";
import { problemOf, shownSince, shownState } from "./plugin-row.ts";
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
  const answer = await agent.get("plugins");
  if (format === "json" || format === "yaml") {
    printValue(output, format, answer);
    return;
  }
  const rows = format === "wide" ? answer : pluginsByName(answer);
  if (rows.length === 0) {
    output.write("No plugins: none has registered, and no in-tree plugin is enabled.\n");
    return;
  }
  const wide = format === "wide";
  const headings = [
    "NAME",
    "TYPE",
    "STATE",
    "SINCE",
    "CONTENT",
    "CHANGED",
    ...(wide ? ["SOCKET"] : []),
    "MESSAGE",
  ];
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
  output.write(
    table(output, headings, cells, (at, column) =>
      column === 2 ? colours[shownState(rows[at]!)] : undefined,
    ),
  );
}

function ageOf(at: number | undefined, now: number): string {
  return at === undefined || at === null ? "-" : age(now - at);
}
