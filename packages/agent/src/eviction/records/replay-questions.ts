import type { EvictionPolicy } from "../decide/policy.ts";
import { prepareRound } from "../decide/prepare.ts";
import type { DecideInput } from "../decide/round.ts";

/** What plugins were not asked in a recorded round and would be under another policy: their answers are not known. */
export interface OpenQuestions {
  /** Plugins whose top pods nobody asked for then. */
  unasked: string[];
  /** Plugins that were asked, but would have had other pods to choose from: they might have answered otherwise. */
  otherOffer: string[];
}

/** Compares whom a round asked for top pods with whom it would ask under another policy. */
export function openQuestions(input: DecideInput, policy: EvictionPolicy): OpenQuestions {
  const [then, now] = [offersOf(input), offersOf({ ...input, policy })];
  const asked = new Set(input.tops.map(({ plugin }) => plugin));
  const plugins = [...now.keys()];
  return {
    unasked: plugins.filter((plugin) => !asked.has(plugin)),
    otherOffer: plugins.filter((plugin) => asked.has(plugin) && then.get(plugin) !== now.get(plugin)),
  };
}

// The pods that each plugin is offered, as a text to compare.
function offersOf(input: DecideInput): Map<string, string> {
  const { questions, selection } = prepareRound(input);
  const all = selection.candidates.map(({ uid }) => uid).join(" ");
  return new Map(questions.map(({ plugin, candidateUids }) => [plugin, candidateUids?.join(" ") ?? all]));
}
