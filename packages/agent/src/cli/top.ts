import { valueText } from "../eviction/index.ts";
import type { ApiAnswers } from "../server/index.ts";
import type { AgentConnection } from "./agent-connection.ts";
import { type Colour, type Output, printValue, type TableFormat, table } from "./output.ts";
import { timeOf } from "./wording.ts";

// A round has asked every plugin within this time, or eviction stands still.
const LOOK_BACK_MS = 5 * 60_000;

type Reading = ApiAnswers["eviction/readings"]["rounds"][number]["readings"][number];

const colours: Partial<Record<Reading["met"], Colour>> = { soft: "yellow", hard: "red" };

/** `top`: prints what eviction plugins observed in the last round, next to their thresholds; closest to it first. */
export async function topCommand(
  agent: AgentConnection,
  format: TableFormat,
  output: Output,
  now: number,
): Promise<void> {
  const { rounds } = await agent.get("eviction/readings", { since: now - LOOK_BACK_MS });
  const last = rounds.at(-1);
  if (format === "json" || format === "yaml") return printValue(output, format, last ?? null);
  if (!last) return output.write(`No round of eviction since ${timeOf(now - LOOK_BACK_MS)}.\n`);
  const readings = [...last.readings].sort((a, b) => shareOf(b) - shareOf(a));
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
  if (format === "wide") output.write(`Round of ${timeOf(last.at)}\n`);
  output.write(
    readings.length === 0
      ? "No eviction plugin reports a threshold.\n"
      : table(output, headings, rows, (row, column) =>
          column === 5 ? colours[readings[row]!.met] : undefined,
        ),
  );
}

/** A signal's part of its threshold: 1 where it meets it, 0 at the least, -1 where that is not known. */
function shareOf({ observed, threshold, operator }: Reading): number {
  if (observed === null || threshold === null) return -1;
  const [part, whole] = operator === "lessThan" ? [threshold, observed] : [observed, threshold];
  if (whole <= 0) return part > whole ? 1 : -1;
  return Math.max(0, part / whole);
}
