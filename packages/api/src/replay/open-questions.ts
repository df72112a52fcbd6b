import { type DecideInput, type EvictionPolicy, prepareRound } from "../decide/index.ts";

/** GetTopEvictionPods calls of a recorded round that another policy would have changed. */
export interface OpenQuestions {
  /** Plugins that were not called in the recorded round. Their answers are unknown. */
  unasked: string[];
  /** Plugins that would have been offered other pods. Their answers might have differed. */
  otherOffer: string[];
}

/** Compares the GetTopEvictionPods calls of a recorded round with those under another policy. Pure. */
export function openQuestions(input: DecideInput, policy: EvictionPolicy): OpenQuestions {
  const [then, now] = [offersOf(input), offersOf({ ...input, policy })];
  const asked = new Set(input.tops.map(({ plugin }) => plugin));
  const plugins = [...now.keys()];
  return {
    unasked: plugins.filter((plugin) => !asked.has(plugin)),
    otherOffer: plugins.filter((plugin) => asked.has(plugin) && then.get(plugin) !== now.get(plugin)),
  };
}

// Returns the offered pods of each plugin, as a string for comparison.
function offersOf(input: DecideInput): Map<string, string> {
  const { questions, selection } = prepareRound(input);
  const all = selection.candidates.map(({ uid }) => uid).join(" ");
  return new Map(questions.map(({ plugin, candidateUids }) => [plugin, candidateUids?.join(" ") ?? all]));
}
