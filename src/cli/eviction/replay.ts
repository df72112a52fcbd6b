import { evictionPolicyOf } from "../../assembly/index.ts";
import { type ConfigurationSources, loadConfiguration } from "../../config/index.ts";
import { addToReplay, emptyReplay, type Replay, type ReplayedRound } from "../../eviction/index.ts";
import { type Output, paint } from "../output.ts";
import { plainText } from "../plain-text.ts";
import { recordsOfAgent, recordsOfFile, sinceOf } from "./record-source.ts";

export interface ReplayOptions {
  /** "host:port" of the agent's status server. */
  server: string;
  format: "text" | "json";
  /** How long ago to begin: "1h". */
  since: string;
  /** A file of recorded rounds in place of the agent. */
  records: string | undefined;
  /** Where the other configuration comes from. */
  sources: ConfigurationSources;
}

/** `nodekeeper replay`: decides recorded rounds anew under another policy, in this process. */
export async function replayCommand(options: ReplayOptions, output: Output, now: number): Promise<void> {
  const { configuration, warnings } = await loadConfiguration(options.sources);
  for (const warning of warnings) process.stderr.write(`nodekeeper: warning: ${warning}\n`);
  const policy = evictionPolicyOf(configuration);
  const since = sinceOf(options.since, now);
  const records = options.records ? recordsOfFile(options.records) : recordsOfAgent(options.server, since);
  const result = emptyReplay();
  for await (const record of records) {
    if (record.input.now >= since || options.records) addToReplay(result, record, policy);
  }
  if (options.format === "json") output.write(`${JSON.stringify(result, null, 2)}\n`);
  else output.write(replayPage(result, output));
}

/** The page of `nodekeeper replay`. */
export function replayPage(replay: Replay, output: Output): string {
  const { rounds, differing, victimsBefore, victimsAfter } = replay;
  if (rounds === 0) return "No recorded round to replay: nothing happened in that time.\n";
  const head = [
    `${rounds} rounds replayed, each on its own recorded state.`,
    `Victims then: ${victimsBefore}; under this policy: ${victimsAfter}.`,
    differing.length === 0
      ? "No round would have decided otherwise."
      : `${differing.length} rounds would have decided otherwise:`,
  ];
  return `${head.join("\n")}\n${differing.map((round) => `\n${roundText(round, output)}`).join("")}`;
}

function roundText(round: ReplayedRound, output: Output): string {
  const { id, at, spared, added, graceChanged, refusals, taints, unasked, before, after } = round;
  const lines = [
    ...spared.map((pod) => [paint(output, "green", "- spared"), `${pod.namespace}/${pod.name}: ${pod.why}`]),
    ...added.map((pod) => [paint(output, "red", "+ evicted"), `${pod.namespace}/${pod.name}: ${pod.why}`]),
    ...graceChanged.map((pod) => [
      "~ grace",
      `${pod.namespace}/${pod.name}: ${grace(pod.after)} in place of ${grace(pod.before)}`,
    ]),
    ...Object.entries(refusals).map(([reason, [then, now]]) => [
      "~ refused",
      `${reason}: ${now} in place of ${then}`,
    ]),
    ...taints.missing.map((taint) => ["- taint", taint]),
    ...taints.added.map((taint) => ["+ taint", taint]),
    ...unasked.map((plugin) => [
      "? unasked",
      `${plugin} would have been asked for its pods: its answer is not known`,
    ]),
  ];
  if (
    spared.length + added.length === 0 &&
    before.length > 1 &&
    before.some(({ uid }, index) => uid !== after[index]?.uid)
  ) {
    lines.push(["~ order", after.map(({ namespace, name }) => `${namespace}/${name}`).join(", ")]);
  }
  const heading = paint(output, "bold", `Round ${id} at ${new Date(at).toISOString()}`);
  return `${heading}\n${lines.map(([what = "", text = ""]) => `  ${what.padEnd(10)} ${plainText(text, 500)}\n`).join("")}`;
}

function grace(seconds: number | null): string {
  return seconds === null ? "its own" : `${seconds} s`;
}
