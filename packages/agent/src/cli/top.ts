import { valueText } from "@nodekeeper/api/decide";
import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { timeOf } from "@nodekeeper/api/wording";
import type { AgentConnection } from "./agent-connection.ts";
import { type Colour, type Output, printAs, type TableFormat, table } from "./output.ts";

// Every plugin is called within this time unless eviction is stuck.
const LOOK_BACK_MS = 5 * 60_000;
// The time of an older round is printed: rounds are skipped or stuck, or it is a round of an earlier agent.
const OLD_MS = 30_000;

type Reading = ApiAnswers["eviction/readings"]["rounds"][number]["readings"][number];

const colours: Partial<Record<Reading["met"], Colour>> = { soft: "yellow", hard: "red" };

/**
 * `top`: prints what eviction plugins observed in the last round and their thresholds, closest to the threshold first.
 */
export async function topCommand(
  agent: AgentConnection,
  format: TableFormat,
  output: Output,
  now: number,
): Promise<void> {
  const { rounds } = await agent.get("eviction/readings", { since: now - LOOK_BACK_MS });
  const last = rounds.at(-1);
  printAs(output, format, last ?? null, () => {
    if (!last) return `No eviction round since ${timeOf(now - LOOK_BACK_MS)}.\n`;
    const isOld = now - last.at > OLD_MS;
    const heading = isOld || format === "wide" ? `Round at ${timeOf(last.at)}\n` : "";
    return heading + readingsTable(last.readings, output);
  });
}

function readingsTable(all: readonly Reading[], output: Output): string {
  if (all.length === 0) return "No eviction plugin reported a reading in the last round.\n";
  const readings = [...all].sort((a, b) => shareOf(b) - shareOf(a));
  const headings = ["PLUGIN", "SIGNAL", "OBSERVED", "THRESHOLD", "SHARE", "MET"];
  const rows = readings.map((reading) => {
    const { plugin, scope, observed, threshold, operator, unit = "", met } = reading;
    const side = operator === "lessThan" ? "<" : ">";
    const share = shareOf(reading);
    return [
      plugin,
      scope || "-",
      valueText(observed, unit),
      threshold === null ? "-" : `${side} ${valueText(threshold, unit)}`,
      share < 0 ? "-" : `${Math.round(share * 100)}%`,
      met === "none" ? "-" : met,
    ];
  });
  return table(output, headings, rows, (row, column) =>
    column === 5 ? colours[readings[row]!.met] : undefined,
  );
}

/** Returns the ratio of a signal to its threshold: 1 or more if it is met, at least 0, or -1 if unknown. */
function shareOf({ observed, threshold, operator }: Reading): number {
  if (observed === null || threshold === null) return -1;
  const [part, whole] = operator === "lessThan" ? [threshold, observed] : [observed, threshold];
  if (whole <= 0) return part > whole ? 1 : -1;
  return Math.max(0, part / whole);
}
