import { useMemo } from "preact/hooks";
import { addressOf } from "../../address.ts";
import { exportedTime, useExport } from "../../export/exports.ts";
import type { Live } from "../../live.ts";
import { Copy } from "../../parts/copy.tsx";
import { Problem, Waiting } from "../../parts/notice.tsx";
import { RoundLink } from "../../parts/round-link.tsx";
import { Age, Time } from "../../parts/time.tsx";
import { useAnswer } from "../../parts/use-answer.ts";
import { at, shown } from "../../text.ts";
import { timelineAddress } from "../pod/timeline-address.ts";
import { whatIfAddress } from "../what-if/query.ts";
import { CandidatesSection } from "./candidates-section.tsx";
import { DecidedSection } from "./decided-section.tsx";
import { roundMarkdown } from "./markdown.ts";
import { PolicySection } from "./policy-section.tsx";
import { RefusedSection } from "./refused-section.tsx";
import { ThresholdsSection } from "./thresholds-section.tsx";
import { type RoundRecord, sentenceOf } from "./words.ts";

interface Props {
  /** Undefined if the address does not have a number. */
  id: number | undefined;
  text: string;
  live: Live;
}

/** What a round read, what it decided about each candidate, and why. */
export function OneRound({ id, text, live }: Props) {
  // A round that is not recorded yet is requested again when another is recorded, or the agent is reachable again.
  const version = `${live.rounds.at(-1)?.id} ${live.connection.state === "lost"}`;
  const isKnown = live.rounds.some((round) => round.id === id);
  const { value, problem } = useAnswer(
    "eviction/records",
    id === undefined ? undefined : { after: Math.max(id - 1, 0), limit: 1 },
    isKnown ? "recorded" : version,
  );
  const record = value?.records.find((one) => one.id === id);
  const isTooLarge = value?.tooLarge.some((one) => one.id === id) ?? false;
  const node = live.node?.nodeName ?? "";
  // A record is immutable, so it is rendered once, regardless of the stream's messages.
  const whole = useMemo(() => record && <Whole record={record} node={node} />, [record, node]);
  return (
    <>
      <p class="pod-back">
        <a href={addressOf("round")}>The last rounds</a>
      </p>
      {problem && <Problem problem={problem} />}
      {id !== undefined && !value && !problem && <Waiting>Reading the records.</Waiting>}
      {whole}
      {isTooLarge && <TooLarge id={id!} />}
      {(id === undefined || (value && !record && !isTooLarge)) && (
        <NotRecorded text={text} next={value?.records[0]} since={live["eviction/node"]?.coverage.requests} />
      )}
    </>
  );
}

function Whole({ record, node }: { record: RoundRecord; node: string }) {
  const { id, input } = record;
  useExport(`Round ${id}`, () => [
    {
      Time: exportedTime(input.now),
      Decision: sentenceOf(record),
      Pods: input.pods.length,
      Candidates: record.decision.ranking.length,
    },
  ]);
  return (
    <div class="columns">
      <div class="stack">
        <div class="card">
          <h2>Round {id}</h2>
          <p class="pod-sentence">{sentenceOf(record)}</p>
          <p>
            <Time at={input.now} />, <Age since={input.now} />. {input.pods.length} pods on the node,{" "}
            {record.decision.ranking.length} of them candidates.
          </p>
          <p>
            <a href={timelineAddress([input.now])}>Timeline</a> ·{" "}
            <a href={whatIfAddress({ typed: new Map(), since: input.now })}>
              What if another policy had decided this round?
            </a>{" "}
            · <a href={jsonOf(id)}>JSON</a>
          </p>
          <Copy
            address={addressOf("round", [String(id)])}
            markdown={(link) => roundMarkdown(record, node, link)}
          />
        </div>
        <DecidedSection record={record} />
        <CandidatesSection record={record} />
      </div>
      <div class="stack">
        <ThresholdsSection record={record} />
        <RefusedSection record={record} />
        <PolicySection record={record} />
      </div>
    </div>
  );
}

function TooLarge({ id }: { id: number }) {
  return (
    <p class="notice" role="status">
      <b>Round {id} is too large for an answer</b>, which has 12 MiB at most. On the node,{" "}
      <code>nodekeeper replay --from</code> with the state directory reads it.
    </p>
  );
}

function NotRecorded({
  text,
  next,
  since,
}: {
  text: string;
  next: RoundRecord | undefined;
  since: number | undefined;
}) {
  return (
    <div class="notice" role="status">
      <p>
        <b>No record of round {shown(text, 60)} exists:</b> it was trimmed (
        <code>eviction.records.maxAge</code>, <code>eviction.records.maxSize</code>), it is in a gap of the
        records, or no round has this ID.
        {since !== undefined && ` Records go back to ${at(since)}.`}
      </p>
      <p>
        {next && (
          <>
            The next one that is recorded is <RoundLink id={next.id} /> (<Time at={next.input.now} />
            ).{" "}
          </>
        )}
        What happened at the time is on the <a href={addressOf("timeline")}>timeline</a>.
      </p>
    </div>
  );
}

function jsonOf(id: number): string {
  return `api/v1/eviction/records?after=${id - 1}&limit=1`;
}
