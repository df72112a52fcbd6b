import type { AgentConnection } from "../agent-connection.ts";
import type { Fleet } from "../fleet.ts";
import { type Output, printAs, type TableFormat } from "../output.ts";
import { fleetPage, fleetSummary } from "./fleet-page.ts";
import { readNodeStatus } from "./node-status.ts";
import { statusPage } from "./status-page.ts";

export interface StatusPrinting {
  format: TableFormat;
  output: Output;
  /** Wall-clock time, milliseconds. */
  now: number;
}

/** `status` for one agent. */
export async function statusCommand(
  agent: AgentConnection,
  { format, output, now }: StatusPrinting,
): Promise<void> {
  const status = await readNodeStatus(agent, now);
  printAs(output, format, status, () => statusPage(status, output, now));
}

/** `status` for all nodes. Returns whether all agents answered. */
export async function fleetStatusCommand(
  fleet: Fleet,
  { format, output, now }: StatusPrinting,
): Promise<boolean> {
  const answers = await fleet.ask((agent) => readNodeStatus(agent, now));
  printAs(output, format, fleetSummary(answers), () =>
    fleetPage(answers, { output, now, isWide: format === "wide" }),
  );
  return answers.every(({ answer, hasAgent }) => answer !== undefined || !hasAgent);
}
