import type { PluginRow } from "../server/index.ts";
import { askAgent } from "./agent-client.ts";
import { age, type Colour, type Output, printJson, table } from "./output.ts";

export interface PluginsOptions {
  /** "host:port" of the agent's status server. */
  server: string;
  format: "table" | "wide" | "json";
}

const colours: Record<string, Colour> = {
  registered: "green",
  "in-tree": "green",
  registering: "yellow",
  superseded: "yellow",
  lost: "yellow",
  failing: "red",
  gone: "yellow",
  refused: "red",
  failed: "red",
};

/** `nodekeeper plugins list`: prints one row for each plugin and socket. */
export async function pluginsCommand(
  { server, format }: PluginsOptions,
  output: Output,
  now: number,
): Promise<void> {
  const rows = await askAgent<PluginRow[]>(server, "/api/v1/plugins");
  if (format === "json") {
    printJson(output, rows, 2);
    return;
  }
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
    ageOf(row.since, now),
    row.contentBytes > 0 ? `${row.contentBytes} B` : "-",
    ageOf(row.contentAt, now),
    ...(wide ? [row.registrationSocket ?? "-"] : []),
    messageOf(row) || "-",
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

// A registered or in-tree plugin whose last call failed is shown as failing.
function shownState({ state, error }: PluginRow): string {
  return error && (state === "registered" || state === "in-tree") ? "failing" : state;
}

function messageOf({ error, errorId, problems }: PluginRow): string {
  if (error) return errorId ? `${errorId}: ${error}` : error;
  if (problems.length === 0) return "";
  return problems.length === 1 ? problems[0]! : `${problems[0]} (and ${problems.length - 1} more)`;
}
