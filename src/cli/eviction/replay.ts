import { evictionPolicyOf } from "../../assembly/index.ts";
import { type ConfigurationSources, loadConfiguration } from "../../config/index.ts";
import { addToReplay, type EvictionPolicy, emptyReplay } from "../../eviction/index.ts";
import type { Output } from "../output.ts";
import { plainJson } from "../plain-text.ts";
import { policyDifferences } from "./policy-differences.ts";
import { recordsOfAgent, recordsOfFile, sinceOf, withRound } from "./record-source.ts";
import { replayPage } from "./replay-page.ts";

export interface ReplayOptions {
  /** "host:port" of the agent's status server. */
  server: string;
  format: "text" | "json";
  /** How long ago to begin: "1h". Undefined is all of a file, and the last hour of an agent. */
  since: string | undefined;
  /** A file of recorded rounds in place of the agent. */
  records: string | undefined;
  /** Where the other configuration comes from. */
  sources: ConfigurationSources;
}

const AGENT_SINCE = "1h";

/** `nodekeeper replay`: decides recorded rounds anew under another policy, in this process. */
export async function replayCommand(options: ReplayOptions, output: Output, now: number): Promise<void> {
  const { server, format, records: file, sources } = options;
  const { configuration, warnings } = await loadConfiguration(sources);
  for (const warning of warnings) process.stderr.write(`nodekeeper: warning: ${warning}\n`);
  const policy = evictionPolicyOf(configuration);
  const text = options.since ?? (file === undefined ? AGENT_SINCE : undefined);
  const since = text === undefined ? undefined : sinceOf(text, now);
  const records = file === undefined ? recordsOfAgent(server, since ?? 0) : recordsOfFile(file);
  const result = emptyReplay();
  let recorded: EvictionPolicy | undefined;
  for await (const record of records) {
    if (record.input.now < (since ?? 0)) continue;
    withRound(record, () => addToReplay(result, record, policy));
    recorded = record.input.policy;
  }
  // The policy may have changed on the way: the newest is the one that an operator would change now.
  const shown = { ...result, policy: recorded ? policyDifferences(recorded, policy) : [] };
  output.write(format === "json" ? `${plainJson(shown, 2)}\n` : replayPage(shown, since, output));
}
