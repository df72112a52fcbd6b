import { outcomeText, refusalCountTexts } from "@nodekeeper/api/wording";
import type { ComponentChildren } from "preact";
import { addressOf } from "../../address.ts";
import type { Live, Round } from "../../live.ts";
import { nodeNow } from "../../node-clock.ts";
import { Problem, Waiting } from "../../parts/notice.tsx";
import { PodLink } from "../../parts/pod-link.tsx";
import { Prose } from "../../parts/prose.tsx";
import { RoundLink } from "../../parts/round-link.tsx";
import { Section } from "../../parts/section.tsx";
import { Table } from "../../parts/table.tsx";
import { Time } from "../../parts/time.tsx";
import { useAnswer } from "../../parts/use-answer.ts";
import { shown } from "../../text.ts";

// Has fewer rounds than a page of the API, even if every round is recorded.
const SINCE_MS = 900_000;
// The query stays the same for this long.
const STEP_MS = 60_000;
const MOST_SHOWN = 50;
const MOST_LINES = 5;

/** Recently recorded rounds, newest first, updated live. */
export function RoundList({ live }: { live: Live }) {
  const since = Math.floor(nodeNow() / STEP_MS) * STEP_MS - SINCE_MS;
  const { value, problem } = useAnswer("eviction/rounds", { since });
  const byId = new Map([...(value ?? []), ...live.rounds].map((round) => [round.id, round]));
  const rounds = [...byId.values()].sort((a, b) => b.id - a.id).slice(0, MOST_SHOWN);
  return (
    <Section
      title="Last rounds"
      remark={<a href={addressOf("timeline")}>earlier ones: marks of the timeline</a>}
    >
      {problem && <Problem problem={problem} />}
      {rounds.length > 0 && (
        <Table
          label="The last rounds, the newest first"
          columns={["Round", "Time", "Thresholds met", "Selected", "Not evicted", "Ended"]}
          rows={rounds.map((round) => ({ key: round.id, cells: cellsOf(round) }))}
        />
      )}
      {rounds.length === 0 && !value && !problem && <Waiting>Reading the records.</Waiting>}
      {rounds.length === 0 && value && (
        <p>
          None in the last 15 minutes. Rounds are recorded when a threshold is met, a pod is requested, or an
          eviction ends, except those that repeat the one before.
        </p>
      )}
    </Section>
  );
}

function cellsOf(round: Round) {
  const { id, at, met, victims, dryRunVictims, refusals, outcomes } = round;
  return [
    <RoundLink id={id} />,
    <Time at={at} />,
    met.length > 0 && <Lines lines={met.map((text) => shown(text, 300))} />,
    victims.length + dryRunVictims.length > 0 && (
      <Lines
        lines={[
          ...victims.map((pod) => <PodLink {...pod} />),
          ...dryRunVictims.map((pod) => (
            <>
              <PodLink {...pod} /> (dry run)
            </>
          )),
        ]}
      />
    ),
    refusalCountTexts(refusals).join(", "),
    outcomes.length > 0 && (
      <Lines
        lines={outcomes.map((outcome) => (
          <>
            <PodLink {...outcome} /> <Prose text={outcomeText(outcome)} longest={200} />
          </>
        ))}
      />
    ),
  ];
}

function Lines({ lines }: { lines: readonly ComponentChildren[] }) {
  return (
    <>
      {lines.slice(0, MOST_LINES).map((line, index) => (
        <div key={index}>{line}</div>
      ))}
      {lines.length > MOST_LINES && <div class="quiet">and {lines.length - MOST_LINES} more</div>}
    </>
  );
}
