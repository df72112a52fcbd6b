import type { FleetProblem, FleetReading } from "@nodekeeper/api/fleet";
import type { NamedProblem, NodeStatus } from "../../status/node-status.ts";

// Bounds what one agent can make the page keep and show.
const MOST_PROBLEMS = 20;
const MOST_CONDITIONS = 20;
const LONGEST_TEXT = 300;

/** Returns what the list of nodes shows of an agent's state. @param at wall-clock time of the answer, milliseconds */
export function readingOf(status: NodeStatus, at: number): FleetReading {
  const { version, startedAt, failingChecks, plugins, failingPlugins, refusedContent, unpublished } = status;
  const { eviction } = status;
  const named = (what: FleetProblem["what"], problems: readonly NamedProblem[]) =>
    problems
      .slice(0, MOST_PROBLEMS)
      .map(({ name, message }) => ({ what, name: cut(name), message: cut(message) }));
  return {
    ...{ at, startedAt, plugins },
    version: cut(version),
    isReady: failingChecks.length === 0,
    mode: eviction?.mode ?? "off",
    failing: failingPlugins.length,
    refused: refusedContent.length + unpublished.length,
    evicted: eviction?.evicted.length ?? 0,
    dryRunEvicted: eviction?.dryRunEvicted.length ?? 0,
    conditions: (eviction?.conditions ?? []).slice(0, MOST_CONDITIONS).map(cut),
    problems: [
      ...named("not ready", failingChecks),
      ...named("failing", failingPlugins),
      ...named("refused", refusedContent),
      ...named("not written", unpublished),
    ].slice(0, MOST_PROBLEMS),
  };
}

function cut(text: string): string {
  return text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT - 1)}…` : text;
}
