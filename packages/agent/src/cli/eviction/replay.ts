import { type EvictionPolicy, evictionPolicyOf } from "@nodekeeper/api/decide";
import { addToReplay, emptyReplay, policyDifferences } from "@nodekeeper/api/replay";
import { type ConfigurationSources, loadConfiguration } from "../../config/index.ts";
import { type Output, type PageFormat, printAs, printMessage } from "../output.ts";
import { type RecordSource, startOf, withRound } from "./record-source.ts";
import { replayPage } from "./replay-page.ts";

export interface ReplayOptions {
  format: PageFormat;
  /**
   * How long ago to start: "1h". If undefined: the last hour of an agent, or everything in a state directory or file.
   */
  since: string | undefined;
  /** The sources of the configuration to replay with. */
  sources: ConfigurationSources;
}

/** `nodekeeper replay`: decides recorded rounds again with another policy, in this process. */
export async function replayCommand(
  source: RecordSource,
  options: ReplayOptions,
  output: Output,
  now: number,
): Promise<void> {
  const { format, sources } = options;
  const { configuration, warnings } = await loadConfiguration(sources);
  for (const warning of warnings) printMessage(`warning: ${warning}`);
  const policy = evictionPolicyOf(configuration);
  const since = startOf(source, options.since, now);
  const result = emptyReplay();
  let recorded: EvictionPolicy | undefined;
  for await (const record of source.records(since ?? 0)) {
    if (record.input.now < (since ?? 0)) continue;
    withRound(record, () => addToReplay(result, record, policy));
    recorded = record.input.policy;
  }
  // The policy may have changed between rounds. The differences shown are from the last one.
  const shown = { ...result, policy: recorded ? policyDifferences(recorded, policy) : [] };
  printAs(output, format, shown, () => replayPage(shown, since, output));
}
