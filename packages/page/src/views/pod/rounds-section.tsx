import { counted, roundHeading } from "@nodekeeper/api/wording";
import { useState } from "preact/hooks";
import { Prose } from "../../parts/prose.tsx";
import { Section } from "../../parts/section.tsx";
import { RoundFacts } from "./round-facts.tsx";
import { decidingRound, type ExplainedRound, type Explanation } from "./story.ts";

/** The round that decided about the pod, then the others, newest first. */
export function RoundsSection({ explanation }: { explanation: Explanation }) {
  const { rounds, omitted } = explanation;
  const deciding = decidingRound(explanation);
  if (!deciding) return null;
  const others = rounds.filter((round) => round !== deciding).reverse();
  return (
    <>
      <Section title="The decision" remark={<Prose text={roundHeading(deciding)} />}>
        <RoundFacts round={deciding} />
      </Section>
      {others.length > 0 && (
        <Section title="Other rounds" remark={counted(others.length, "round")}>
          {others.map((round) => (
            <OtherRound key={round.id} round={round} />
          ))}
          {omitted > 0 && <p class="quiet">{counted(omitted, "other round")} omitted.</p>}
        </Section>
      )}
    </>
  );
}

// Of up to 50 rounds, only opened ones are rendered.
function OtherRound({ round }: { round: ExplainedRound }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <Prose text={roundHeading(round)} />: {gistOf(round)}
      </summary>
      {isOpen && <RoundFacts round={round} />}
    </details>
  );
}

function gistOf(round: ExplainedRound): string {
  const { victim, dryRunVictim, outcome, withdrawals, exclusion, refusals, place } = round;
  if (victim) return "selected";
  if (outcome) return "its eviction ended";
  if (withdrawals.length > 0) return "withdrawn";
  if (dryRunVictim) return "would have been selected, dry run";
  if (exclusion) return "not a candidate";
  if (refusals.length > 0) return "refused";
  return place ? `rank ${place.rank}, not requested` : "nothing decided about it";
}
