import { missingLines, outcomeText } from "@nodekeeper/api/wording";
import { useRef } from "preact/hooks";
import { addressOf } from "../../address.ts";
import { ask } from "../../api.ts";
import type { Live } from "../../live.ts";
import { nodeNow } from "../../node-clock.ts";
import { Badge, type Tone } from "../../parts/badge.tsx";
import { Problem, Waiting } from "../../parts/notice.tsx";
import { PluginLink } from "../../parts/plugin-links.tsx";
import { PodLink } from "../../parts/pod-link.tsx";
import { Prose } from "../../parts/prose.tsx";
import { Section } from "../../parts/section.tsx";
import { Table } from "../../parts/table.tsx";
import { Age } from "../../parts/time.tsx";
import { type Answer, useRead } from "../../parts/use-answer.ts";
import { shown } from "../../text.ts";
import { knownAt } from "./answers.ts";
import { type Eviction, type EvictionGroup, groupEvictions } from "./group-evictions.ts";
import { HOUR_MS, type LastHour, ofLastHour, readLastHour } from "./last-hour.ts";

type Result = NonNullable<Eviction["outcome"]>["result"];

// The query stays the same for this long, so that rendering does not restart the request.
const STEP_MS = 600_000;
const MOST_SHOWN = 20;
// Sentences about missing records.
const MOST_MISSING = 5;

/** The evictions of the last hour, and why there is no newer answer. Keeps the last answer while there is none. */
export interface LastEvictions {
  lastHour: LastHour | undefined;
  problem: Answer<LastHour>["problem"];
}

/** Reads the evictions of the last hour, and again when a round selected a pod or an eviction ended. */
export function useEvictions(live: Live): LastEvictions {
  const since = Math.floor(nodeNow() / STEP_MS) * STEP_MS - HOUR_MS;
  const isOn = live.node?.eviction != null;
  const { value, problem } = useRead(
    { key: isOn ? String(since) : undefined, version: versionOf(live) },
    (signal) => readLastHour((after) => ask("eviction/evictions", { since, after }, signal)),
  );
  const last = useRef<LastHour>(undefined);
  if (value) last.current = value;
  return { lastHour: last.current, problem };
}

/** The evictions of the last hour, newest first, with their outcomes. */
export function EvictionsSection({ live, lastHour, problem }: LastEvictions & { live: Live }) {
  const now = knownAt(live, nodeNow());
  const groups = groupEvictions(ofLastHour(lastHour?.items ?? [], now));
  const missing = lastHour ? missingLines(lastHour.coverage, now - HOUR_MS).slice(0, MOST_MISSING) : [];
  return (
    <Section title="Last evictions" remark={<a href={addressOf("timeline")}>earlier ones: timeline</a>}>
      {problem && <Problem problem={problem} />}
      {!lastHour && !problem && <Waiting>Reading the records.</Waiting>}
      {lastHour && groups.length === 0 && (
        <p>
          <Prose
            text={[`None ${missing.length > 0 ? "is recorded for" : "in"} the last hour.`, ...missing].join(
              " ",
            )}
          />
        </p>
      )}
      {groups.length > 0 && (
        <Table
          label="Evictions of the last hour, the last first"
          columns={["Pod", "Selected", "Outcome", "Requested by", "Why"]}
          rows={groups.slice(0, MOST_SHOWN).map((group) => ({
            key: `${group.last.uid} ${group.last.round}`,
            cells: cellsOf(group),
          }))}
        />
      )}
      {groups.length > 0 && missing.length > 0 && (
        <p class="quiet">
          <Prose text={missing.join(" ")} />
        </p>
      )}
      {lastHour?.isCut && <p class="quiet">There are newer ones, which are not read: see the timeline.</p>}
      {groups.length > MOST_SHOWN && (
        <p class="quiet">
          The last {MOST_SHOWN} of {groups.length} in the last hour.
        </p>
      )}
    </Section>
  );
}

function versionOf({ rounds, missedAt }: Live): string {
  const last = rounds.findLast(
    ({ victims, dryRunVictims, outcomes }) => victims.length + dryRunVictims.length + outcomes.length > 0,
  );
  return `${last?.id} ${missedAt}`;
}

const tones: Readonly<Record<Result, Tone>> = {
  terminated: "ok",
  superseded: "quiet",
  unknown: "warn",
  overdue: "warn",
  failed: "bad",
  withdrawn: "quiet",
};

function cellsOf({ last, times }: EvictionGroup) {
  const { uid, namespace, name, at, plugin, kind, reason, dryRun, outcome } = last;
  return [
    <PodLink namespace={namespace} name={name} uid={uid} />,
    <Age since={at} />,
    dryRun ? (
      <>
        <Badge>dry run: not evicted</Badge> {times > 1 && `${times} times`}
      </>
    ) : outcome ? (
      <Badge tone={tones[outcome.result]}>{shown(outcomeText(outcome), 200)}</Badge>
    ) : (
      <Badge tone="warn">in progress</Badge>
    ),
    <>
      <PluginLink name={plugin} /> <small>({kind})</small>
    </>,
    shown(reason, 300),
  ];
}
