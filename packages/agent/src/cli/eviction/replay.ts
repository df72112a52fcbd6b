import { type EvictionPolicy, evictionPolicyOf, isFullDryRun } from "@nodekeeper/api/decide";
import {
  addToReplay,
  emptyReplay,
  type PolicyDifference,
  policyDifferences,
  type Replay,
  type ReplayedRound,
} from "@nodekeeper/api/replay";
import {
  differenceText,
  missingLines,
  type ReplayLabel,
  replayLines,
  replaySentences,
  timeOf,
} from "@nodekeeper/api/wording";
import { type ConfigurationSources, loadConfiguration } from "../../config/index.ts";
import { type Colour, type Output, type PageFormat, paint, printAs, printMessage } from "../output.ts";
import { labelled } from "../wording.ts";
import { type RecordSource, roundsSince, startOf, withRound } from "./record-source.ts";

const DRY_RUN = "eviction.dryRunPlugins";

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
  const { configuration, warnings, origins } = await loadConfiguration(sources);
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
  if (recorded && !isFullDryRun(recorded) && !origins.has(DRY_RUN)) {
    printMessage(
      `warning: ${DRY_RUN} is not set in this configuration, and its default evicts no pod; to compare evictions, set it to ${JSON.stringify(recorded.dryRunPlugins)} as in the last replayed round`,
    );
  }
  printAs(output, format, shown, () => replayPage(shown, since, output));
  const { coverage } = await source.explainNode();
  for (const line of missingLines(coverage, since ?? coverage.oldest ?? 0)) printMessage(line);
}

/** A replay, with the differences between the policies. */
export interface ShownReplay extends Replay {
  policy: PolicyDifference[];
}

/**
 * The page of `nodekeeper replay`. @param since wall-clock milliseconds of the first round; undefined for all rounds
 */
export function replayPage(replay: ShownReplay, since: number | undefined, output: Output): string {
  const { rounds, differing, policy } = replay;
  if (rounds === 0) {
    return `No recorded ${since === undefined ? "round" : `round since ${timeOf(since)}`}: nothing to replay.\n`;
  }
  const sentences = replaySentences(replay);
  return [
    policy.length === 0
      ? "The policy is the same as in the last replayed round.\n"
      : "The policy differs from the one in the last replayed round:\n",
    ...policy.map((difference) => labelled(difference.field, differenceText(difference))),
    "\n",
    `${roundsSince(rounds, since)} replayed: ${sentences.victims}\n`,
    sentences.dryRun && `${sentences.dryRun}\n`,
    `${sentences.differing}\n`,
    sentences.uncertain && `${sentences.uncertain}\n`,
    ...differing.map((round) => `\n${roundText(round, output)}`),
  ].join("");
}

const colours: Partial<Record<ReplayLabel, Colour>> = { "- evicted": "green", "+ evicted": "red" };

function roundText(round: ReplayedRound, output: Output): string {
  const lines = replayLines(round).map(({ label, pod, text }) => {
    const line = labelled(label, pod ? `${pod.namespace}/${pod.name}: ${text}` : text);
    const colour = colours[label];
    return colour ? paint(output, colour, line) : line;
  });
  return [`${paint(output, "bold", `Round ${round.id} at ${timeOf(round.at)}`)}\n`, ...lines].join("");
}
