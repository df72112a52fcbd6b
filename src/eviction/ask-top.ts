import { answerOf } from "./answers.ts";
import { selectCandidates } from "./candidates.ts";
import type { TopQuestion } from "./decision.ts";
import type { RoundInput } from "./round.ts";
import { followClock } from "./state.ts";
import { advanceThresholds } from "./thresholds.ts";

/**
 * Which plugins are to be asked for their top pods, sorted by name: those whose threshold has been met for its grace
 * period and who have any candidate to choose from. A hard threshold asks for one pod; a soft one for 0, which serves
 * notification. Plugins in dry run are asked too, to see what they would do.
 */
export function askTop(input: RoundInput): TopQuestion[] {
  const { candidates } = selectCandidates(input.pods, input.nodeName, input.policy.skip);
  const uids = new Set(candidates.map((pod) => pod.uid));
  const answers = new Map(input.plugins.map(({ plugin, threshold }) => [plugin, answerOf(threshold)]));
  const questions: TopQuestion[] = [];
  for (const { plugin, scope, metType, confirmed } of advanceThresholds({
    ...input,
    state: followClock(input.state, input.now),
  }).met) {
    if (!confirmed) continue;
    const wanted = answers.get(plugin)?.candidateUids ?? [];
    const offered = wanted.length === 0 ? null : [...new Set(wanted)].filter((uid) => uids.has(uid)).sort();
    if (uids.size === 0 || offered?.length === 0) continue;
    questions.push({ plugin, scope, topN: metType === "hard" ? 1 : 0, candidateUids: offered });
  }
  return questions;
}
