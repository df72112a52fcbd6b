import { codeOf, messageOf, NodekeeperError } from "@nodekeeper/core/lib";
import type { PodExplanation } from "../../eviction/index.ts";
import type { FleetAnswer } from "../fleet.ts";
import { printMessage } from "../output.ts";

const MOST_NAMED = 5;

/**
 * Of pods of one name on several nodes, the one that was there last; the other nodes are printed to standard error. Throws
 * `notFound` where no agent has a record of the pod; `unavailable` where one that has it may be among those that did not
 * answer.
 */
export function newestOf(answers: readonly FleetAnswer<PodExplanation>[], pod: string): PodExplanation {
  const found = answers
    .flatMap(({ node, answer }) => (answer ? [{ node, answer }] : []))
    .sort((a, b) => lastSeen(b.answer) - lastSeen(a.answer));
  const silent = answers.filter(({ answer, error }) => !answer && codeOf(error) !== "notFound");
  const [newest, ...older] = found;
  if (newest) {
    if (older.length > 0) {
      const nodes = older.map(({ node }) => node).join(", ");
      printMessage(`this pod was on node ${newest.node}; earlier ones of this name: --node ${nodes}`);
    }
    return newest.answer;
  }
  const asked = `no record of the pod ${pod}: asked ${answers.length} agents`;
  // Each error has since when the records of its node are kept.
  if (silent.length === 0) {
    throw new NodekeeperError("notFound", `${asked}: ${errorsText(answers)}`, { id: "NK1606" });
  }
  const message = `${asked}, of which ${silent.length} did not answer: ${errorsText(silent)}`;
  throw new NodekeeperError("unavailable", message, { id: "NK1710" });
}

function errorsText(answers: readonly FleetAnswer<PodExplanation>[]): string {
  const some = answers.slice(0, MOST_NAMED).map(({ node, error }) => `${node} (${messageOf(error)})`);
  const rest = answers.length > some.length ? ` and ${answers.length - some.length} more` : "";
  return `${some.join("; ")}${rest}`;
}

/** Wall milliseconds of the last thing that is recorded about the pod. */
function lastSeen({ rounds, steps, events, history }: PodExplanation): number {
  const times = [...rounds.map(({ until }) => until), ...[...steps, ...events].map(({ at }) => at)];
  return Math.max(0, history?.leftAt ?? 0, ...times);
}
