import { setTimeout as sleep } from "node:timers/promises";
import type { RoundSummary } from "../../eviction/index.ts";
import { askAgent } from "../agent-client.ts";
import { type Output, paint } from "../output.ts";
import { plainText } from "../plain-text.ts";
import { recordsOfAgent, sinceOf } from "./record-source.ts";

export interface RoundsOptions {
  /** "host:port" of the agent's status server. */
  server: string;
  format: "text" | "json";
  /** How long ago to begin: "1h". */
  since: string;
  follow: boolean;
  /** Whole records as lines of JSON, for `replay` and `policy test` elsewhere. */
  records: boolean;
}

const POLL_MS = 1_000;

/** `nodekeeper rounds` */
export async function roundsCommand(
  options: RoundsOptions,
  output: Output,
  now: number,
  signal: AbortSignal,
): Promise<void> {
  const { server, format, follow } = options;
  const since = sinceOf(options.since, now);
  if (options.records) {
    for await (const record of recordsOfAgent(server, since)) {
      signal.throwIfAborted();
      output.write(`${JSON.stringify(record)}\n`);
    }
    return;
  }
  let last = 0;
  let shown = 0;
  while (!signal.aborted) {
    const path = `/api/v1/eviction/rounds?since=${since}&after=${last}`;
    const rounds = await askAgent<RoundSummary[]>(server, path);
    for (const round of rounds)
      output.write(format === "json" ? `${JSON.stringify(round)}\n` : roundLine(round, output));
    shown += rounds.length;
    last = rounds.at(-1)?.id ?? last;
    // The agent gives a thousand at most at once.
    if (rounds.length > 0) continue;
    if (!follow) break;
    await sleep(POLL_MS, undefined, { signal }).catch(() => {});
  }
  if (shown === 0 && format === "text" && !signal.aborted) {
    output.write(`No round since ${new Date(since).toISOString()} in which anything happened.\n`);
  }
}

/** One round in a line. */
export function roundLine(round: RoundSummary, output: Output): string {
  const { at, id, candidates, pods, victims, dryRunVictims, met, failures, outcomes, withdrawals } = round;
  const refusals = Object.entries(round.refusals).map(([reason, count]) => `${count} ${reason}`);
  const names = (list: readonly { namespace: string; name: string }[]) =>
    list.map(({ namespace, name }) => `${namespace}/${name}`).join(", ");
  const parts = [
    met.length > 0 ? paint(output, "yellow", plainText(`met: ${met.join(", ")}`)) : "",
    victims.length > 0 ? paint(output, "red", plainText(`evicts: ${names(victims)}`, 1_000)) : "",
    dryRunVictims.length > 0 ? plainText(`would evict (dry run): ${names(dryRunVictims)}`, 1_000) : "",
    refusals.length > 0 ? `refused: ${refusals.join(", ")}` : "",
    withdrawals > 0 ? `withdrawn: ${withdrawals}` : "",
    ...outcomes.map(({ result, message }) => plainText(`ended ${result}: ${message}`)),
    failures.length > 0 ? paint(output, "red", plainText(`failed: ${failures.join(", ")}`)) : "",
  ].filter((part) => part !== "");
  const head = `${new Date(at).toISOString()}  round ${id}  ${candidates} of ${pods} pods are candidates`;
  return `${[head, ...parts].join("; ")}\n`;
}
