import type { PodExplanation } from "@nodekeeper/api/records";
import { explanationPage } from "../../../packages/agent/src/cli/eviction/explanation-page.ts";

type Round = PodExplanation["rounds"][number];

// Refusals without a consequence: the plugin named no pod of the node, or was in dry run.
const INCONSEQUENTIAL: ReadonlySet<string> = new Set(["unknownPod", "nameMismatch", "dryRun"]);

/** The parts of the page of `explain pod`. */
interface Words {
  /** Who, and why it left or did not. */
  verdict: string;
  /** All before the rounds: also the description of the pod, and what happened. */
  head: string;
  /** Without headings, and the lines at the end. */
  rounds: { round: Round; text: string }[];
}

const output = { write: () => {}, isTerminal: false, columns: 200 };
const PARTS = /\n\n(?=Round \S+ at |Records go back to |Records are missing |Other recorded pods |\()/;

/** Returns what `explain pod` prints. */
export function wordsOf(explanation: PodExplanation): Words {
  const [head = ""] = explanationPage(explanation, output).split(PARTS);
  return {
    head: head.trimEnd(),
    verdict: head.split("\n\n")[1] ?? "",
    rounds: explanation.rounds.map((round) => ({ round, text: textOf(explanation, round) })),
  };
}

function textOf(explanation: PodExplanation, round: Round): string {
  const page = explanationPage({ ...explanation, rounds: [round], omitted: 0 }, output);
  const text = page.split(PARTS).find((part) => part.startsWith("Round ")) ?? "";
  return text.slice(text.indexOf("\n") + 1).trimEnd();
}

/** Returns whether the archive must have the pod: it left, or a decision with a consequence concerns it. */
export function isArchived({ history, rounds }: PodExplanation): boolean {
  return (
    history?.leftAt != null || rounds.some((round) => hasEvent(round) || hardRefusalsOf(round).length > 0)
  );
}

/**
 * Returns in what the archive's words about a pod differ from the node's, except for rounds without a consequence for
 * the pod, repeated refusals and withdrawals, containers of a pod that is still there, and how far back records go.
 */
export function differencesOf(said: PodExplanation, answer: PodExplanation): string[] {
  const [node, archive] = [said, answer].map((one) => wordsOf({ ...one, events: exportedEvents(one) })) as [
    Words,
    Words,
  ];
  const differs = (what: string, one: string, other: string) =>
    one === other ? [] : [`${said.name} (${said.uid}): ${what}:\n${one}\n--- in the archive:\n${other}`];
  const heads = hasSameRefusal(said, answer)
    ? [node.head, archive.head]
    : [node, archive].map(withoutRefusal);
  return [
    ...differs("the page", heads[0]!, heads[1]!),
    ...node.rounds.flatMap(({ round, text }) => {
      const same = archive.rounds.find((one) => one.round.id === round.id);
      if (same) return differs(`round ${round.id}`, text, same.text);
      const isThere = answer.rounds.some((one) => covers(round, one) || covers(one, round));
      return !isThere && isMissing(round, answer.rounds)
        ? differs(`round ${round.id}`, text, "(nothing)")
        : [];
    }),
    ...archive.rounds.flatMap(({ round, text }) =>
      said.omitted > 0 || said.rounds.some((one) => covers(one, round))
        ? []
        : differs(`round ${round.id}`, "(nothing)", text),
    ),
  ];
}

// They are exported with the end of a pod, and again if a container exits later.
function exportedEvents({ history, events }: PodExplanation): PodExplanation["events"] {
  const leftAt = history?.leftAt;
  return leftAt == null
    ? []
    : events.filter(({ at, message }) => at <= leftAt || message !== "sandbox stopped");
}

// The last refusal is in the verdict. Refusals of soft requests, and repeated ones, are not exported.
function hasSameRefusal(said: PodExplanation, answer: PodExplanation): boolean {
  const last = ({ rounds }: PodExplanation) =>
    rounds.findLast(({ refusals, dryRunVictim }) => refusals.length > 0 || dryRunVictim !== null)?.id;
  return last(said) === last(answer);
}

function withoutRefusal({ head }: Words): string {
  return head
    .replace(/ Before that, Nodekeeper did not evict it: .*\.$/m, "")
    .replace(/^Not evicted: .*\.$/m, "Not evicted.");
}

// Equal rounds in succession are one entry, of the first.
function covers({ at, until }: Round, other: Round): boolean {
  return other.at >= at && other.at <= until;
}

function hasEvent({ victim, outcome }: Round): boolean {
  return victim !== null || outcome !== null;
}

/** Whether the archive lacks something that a round decided, and that was not decided alike before. */
function isMissing(round: Round, archived: readonly Round[]): boolean {
  if (hasEvent(round)) return true;
  const before = archived.filter(({ at }) => at <= round.at);
  // The request may have been forced before: such a refusal is archived although the plugin's threshold is soft.
  const refused = new Set(before.flatMap(({ refusals }) => consequentialOf(refusals)));
  return (
    hardRefusalsOf(round).some((refusal) => !refused.has(refusal)) ||
    round.withdrawals.some(
      ({ stage }) => !before.some((one) => one.withdrawals.some((other) => other.stage === stage)),
    )
  );
}

// Forced requests are hard, whatever the plugin's threshold, but the rounds do not have which ones were forced.
function hardRefusalsOf({ thresholds, refusals }: Round): string[] {
  const hard = new Set(thresholds.filter(({ metType }) => metType === "hard").map(({ plugin }) => plugin));
  return consequentialOf(refusals.filter(({ plugin }) => hard.has(plugin)));
}

function consequentialOf(refusals: Round["refusals"]): string[] {
  return refusals
    .filter(({ reason }) => !INCONSEQUENTIAL.has(reason))
    .map(({ plugin, reason }) => `${plugin} ${reason}`);
}
