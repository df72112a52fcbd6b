import { plainText } from "@nodekeeper/api/text";
import { age, counted, evictionModeText, timeOf } from "@nodekeeper/api/wording";
import { type Output, paint } from "../output.ts";
import type { EvictionStatus, NamedProblem, NodeStatus } from "./node-status.ts";

const MOST_LINES = 20;

/** The page of `status` for one node: one line per part, then one per problem. */
export function statusPage(status: NodeStatus, output: Output, now: number): string {
  const { node, version, startedAt, failingChecks, plugins, failingPlugins } = status;
  const { refusedContent, unpublished, eviction } = status;
  const failing = failingPlugins.length;
  return [
    `${paint(output, "bold", plainText(`Node ${node}`))}\n`,
    line("Agent", `nodekeeper ${version}, started ${timeOf(startedAt)} (${age(now - startedAt)} ago)`),
    line("Health", failingChecks.length === 0 ? "ready" : "not ready:"),
    ...problemLines(failingChecks, output),
    line("Plugins", `${plugins}, ${failing === 0 ? "none failing" : `${failing} failing:`}`),
    ...problemLines(failingPlugins, output),
    line("Refused", refusedContent.length === 0 ? "no plugin content" : "plugin content:"),
    ...problemLines(refusedContent, output),
    line("Publishing", unpublished.length === 0 ? "up to date" : "can't write:"),
    ...problemLines(unpublished, output),
    ...evictionLines(eviction, output),
  ].join("");
}

function evictionLines(eviction: EvictionStatus | undefined, output: Output): string[] {
  if (!eviction) return [line("Eviction", "off")];
  const { mode, dryRunPlugins, evicted, dryRunEvicted, missing, conditions } = eviction;
  const recorded = missing.length > 0 ? " recorded" : "";
  return [
    line("Eviction", plainText(evictionModeText(mode, dryRunPlugins), 600)),
    line(
      "Evicted",
      `${counted(evicted.length, "pod")}${recorded} in the last hour${evicted.length > 0 ? ":" : ""}`,
    ),
    ...listed(evicted),
    ...listed(missing),
    ...(dryRunEvicted.length > 0
      ? [
          line("Dry run", `${counted(dryRunEvicted.length, "pod")} would have been evicted:`),
          ...listed(dryRunEvicted),
        ]
      : []),
    line(
      "Conditions",
      conditions.length === 0 ? "none" : paint(output, "yellow", plainText(conditions.join(", "))),
    ),
  ];
}

function problemLines(problems: readonly NamedProblem[], output: Output): string[] {
  const texts = problems.map(({ name, message }) =>
    paint(output, "red", plainText(message ? `${name}: ${message}` : name, 600)),
  );
  return bounded(texts);
}

function listed(names: readonly string[]): string[] {
  return bounded(names.map((name) => plainText(name)));
}

function bounded(texts: readonly string[]): string[] {
  const shown = texts.slice(0, MOST_LINES).map((text) => `  ${text}\n`);
  return texts.length > MOST_LINES ? [...shown, `  and ${texts.length - MOST_LINES} more\n`] : shown;
}

function line(what: string, text: string): string {
  return `${`${what}:`.padEnd(12)} ${text}\n`;
}
