import { type RoundLine, roundLines } from "@nodekeeper/api/wording";
import { Prose } from "../../parts/prose.tsx";
import { RoundLink } from "../../parts/round-link.tsx";
import { RankingTable } from "./ranking-table.tsx";
import type { ExplainedRound } from "./story.ts";

/** A round from a pod's point of view: what was met, requested and decided, and the ranking. */
export function RoundFacts({ round }: { round: ExplainedRound }) {
  return (
    <>
      <dl class="pod-facts">
        {byLabel(roundLines(round)).map(([label, texts]) => (
          <div key={label}>
            <dt>{label}</dt>
            {texts.map((text) => (
              <dd key={text}>
                <Prose text={text} />
              </dd>
            ))}
          </div>
        ))}
      </dl>
      <RankingTable round={round} />
      <p>
        <RoundLink id={round.id}>The whole of round {round.id}</RoundLink>: readings, policy, and every
        candidate.
      </p>
    </>
  );
}

function byLabel(lines: readonly RoundLine[]): [string, string[]][] {
  return [...Map.groupBy(lines, ({ label }) => label)].map(([label, group]) => [
    label,
    [...new Set(group.map(({ text }) => text))],
  ]);
}
