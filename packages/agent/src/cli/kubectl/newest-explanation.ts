import { AgentUnreachable, PodNotRecorded } from "@nodekeeper/api/errors";
import type { PodExplanation } from "@nodekeeper/api/records";
import { counted } from "@nodekeeper/api/wording";
import { codeOf, messageOf } from "@nodekeeper/core/lib";
import type { FleetAnswer } from "../fleet.ts";

const MOST_NAMED = 5;

/**
 * Returns the explanation of the most recent pod if pods of the same name were on several nodes. The notes name the
 * other nodes, and the nodes whose agents did not answer. Throws `notFound` if no agent has a record of the pod, and
 * `unavailable` if an agent that did not answer may have one.
 * @param isByName whether the pod was specified by name, which several pods may have had
 */
export function newestOf(
  answers: readonly FleetAnswer<PodExplanation>[],
  pod: string,
  isByName: boolean,
): { node: string; answer: PodExplanation; notes: string[] } {
  const found = answers
    .flatMap(({ node, answer }) => (answer ? [{ node, answer }] : []))
    .sort((a, b) => lastSeen(b.answer) - lastSeen(a.answer));
  const silent = answers.filter(({ answer, error }) => !answer && codeOf(error) !== "notFound");
  const [newest, ...older] = found;
  if (newest) {
    const notes: string[] = [];
    if (older.length > 0)
      notes.push(`For other pods of this name, use --node ${older.map(({ node }) => node).join(", ")}.`);
    if (silent.length > 0 && isByName && newest.answer.history?.leftAt !== null)
      notes.push(
        `A later pod of this name may be on a node whose agent did not answer: ${errorsText(silent)}.`,
      );
    return { ...newest, notes };
  }
  const asked = `no record of pod ${pod}: queried ${counted(answers.length, "agent")}`;
  // Each error includes since when the node's records are kept.
  if (silent.length === 0) {
    throw new PodNotRecorded({ problem: `${asked}: ${errorsText(answers)}` });
  }
  const message = `${asked}, of which ${silent.length} did not answer: ${errorsText(silent)}`;
  throw new AgentUnreachable({ problem: message });
}

function errorsText(answers: readonly FleetAnswer<PodExplanation>[]): string {
  const some = answers.slice(0, MOST_NAMED).map(({ node, error }) => `${node} (${messageOf(error)})`);
  const rest = answers.length > some.length ? ` and ${answers.length - some.length} more` : "";
  return `${some.join("; ")}${rest}`;
}

/** Wall-clock time of the last record of the pod, milliseconds. A pod that still exists is later than any other. */
function lastSeen({ rounds, steps, events, history }: PodExplanation): number {
  if (history?.leftAt === null) return Number.MAX_SAFE_INTEGER;
  const times = [...rounds.map(({ until }) => until), ...[...steps, ...events].map(({ at }) => at)];
  return Math.max(0, history?.leftAt ?? 0, ...times);
}
