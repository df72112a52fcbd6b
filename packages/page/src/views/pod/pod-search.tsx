import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { useMemo, useRef, useState } from "preact/hooks";
import { addressOf, goTo } from "../../address.ts";
import type { Live } from "../../live.ts";
import { nodeNow } from "../../node-clock.ts";
import { Badge, type Tone } from "../../parts/badge.tsx";
import { Problem } from "../../parts/notice.tsx";
import { PodLink } from "../../parts/pod-link.tsx";
import { Prose } from "../../parts/prose.tsx";
import { Table } from "../../parts/table.tsx";
import { useTicking } from "../../parts/ticker.ts";
import { Age } from "../../parts/time.tsx";
import { type Answer, useAnswer } from "../../parts/use-answer.ts";
import { useDeferred } from "../../parts/use-deferred.ts";
import { runtimeNotice } from "../../runtime-notice.ts";
import { shown } from "../../text.ts";
import { EvictionIsOff } from "./eviction-is-off.tsx";
import {
  countEnded,
  countText,
  type EligiblePod,
  isEligibilityNeeded,
  isSortKey,
  isUsageNeeded,
  type ListedPod,
  listPods,
  ownerText,
  type SortKey,
  sortPods,
  usedText,
  withUsage,
} from "./listed-pods.ts";

const MOST_SHOWN = 200;
const PAUSE_MS = 200;
// As often as the agent reads it.
const USAGE_MS = 5_000;
// Two names of 253 characters and a slash.
const LONGEST_TEXT = 507;

/** Current and former pods of the node, for selection. */
export function PodSearch({
  live,
  text,
  query: asked,
}: {
  live: Live;
  text: string;
  query: URLSearchParams;
}) {
  const [typed, setTyped] = useState(text);
  const wanted = useDeferred(typed.trim(), PAUSE_MS);
  const version = live.events.at(-1)?.sequence;
  const isOff = live.node?.eviction === null;
  const sort = asked.get("sort") ?? "";
  const wantedEviction = isOff ? "" : (asked.get("eviction") ?? "");
  const query = isOff || !live.node ? undefined : { text: wanted || undefined, limit: MOST_SHOWN };
  const history = useAnswer("eviction/pods", query, version);
  const runtime = useAnswer("pods", { limit: 1_000 }, version);
  // On a quiet node there is no recorded round after a reason ends.
  const known = useRef<readonly EligiblePod[]>(undefined);
  const ended = useTicking((now) => String(countEnded(known.current, now)));
  const eligibility = useAnswer(
    "eviction/eligibility",
    isOff || !live.node ? undefined : {},
    `${version} ${live.rounds.at(-1)?.id} ${ended}`,
  );
  known.current = eligibility.value;
  const usage = useAnswer("pods/usage", {}, Math.floor(nodeNow() / USAGE_MS));
  const pods = listPods(wanted, history.value?.items ?? [], runtime.value?.items ?? [], eligibility.value);
  const found = sorted(withUsage(pods, usage.value?.items), sort).filter(
    ({ eligible }) => wantedEviction === "" || eligible?.eviction === wantedEviction,
  );
  const show = (change: { text?: string; sort?: string; eviction?: string }) => {
    const next = { text: typed.trim(), sort, eviction: wantedEviction, ...change };
    goTo(
      addressOf("pod", [], {
        text: next.text || undefined,
        sort: next.sort || undefined,
        eviction: next.eviction || undefined,
      }),
      "replace",
    );
  };
  const by = sort.replace(/^-/, "");
  const notice = runtimeNotice(live);
  const listed = found.slice(0, MOST_SHOWN);
  const counts = {
    found: found.length,
    listed: listed.length,
    hasMore: history.value?.more ?? false,
    filter: wantedEviction ? filters.find(([value]) => value === wantedEviction)?.[1] : undefined,
  };
  const table = useMemo(
    () => (
      <Table
        label="Pods"
        columns={columns.map(([title]) => title)}
        sorting={{
          keys: columns.map(([, key]) => key),
          by,
          isDescending: sort.startsWith("-"),
          onSort: (key) => show({ sort: key === sort ? `-${key}` : key }),
        }}
        rows={listed.map((pod) => ({ key: pod.uid, cells: cellsOf(pod, usage) }))}
      />
    ),
    [
      wanted,
      sort,
      wantedEviction,
      history.value,
      runtime.value,
      eligibility.value,
      usage.value,
      usage.problem,
    ],
  );
  const isEligibilityMissing = !isOff && !eligibility.value && isEligibilityNeeded(sort, wantedEviction);
  // Waits for the values to sort by. Otherwise the rows would be reordered when they arrive.
  const sortedBy = isUsageNeeded(sort) ? [runtime, usage] : by === "restarts" ? [runtime] : [];
  const isUnsorted = (isEligibilityMissing && isAwaited(eligibility)) || sortedBy.some(isAwaited);
  const isWaiting = isAwaited(isOff ? runtime : history) || isUnsorted;
  return (
    <div class="card">
      <search>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            const [only] = found;
            if (only && found.length === 1)
              goTo(
                addressOf("pod", [only.namespace, only.name], {
                  uid: only.isRecorded ? only.uid : undefined,
                }),
              );
          }}
        >
          <label>
            Find a pod by a part of its name, or by its UID
            <input
              type="search"
              value={typed}
              maxLength={LONGEST_TEXT}
              placeholder="default/web"
              onInput={({ currentTarget: { value } }) => {
                setTyped(value);
                show({ text: value.trim() });
              }}
            />
          </label>
          {!isOff && (
            <fieldset class="tools">
              <legend class="unseen">Can be evicted</legend>
              {filters.map(([value, title]) => (
                <button
                  key={value}
                  type="button"
                  aria-pressed={value === wantedEviction}
                  onClick={() => show({ eviction: value })}
                >
                  {title}
                </button>
              ))}
            </fieldset>
          )}
        </form>
      </search>
      {isOff && <EvictionIsOff />}
      {history.problem && (
        <Problem problem={history.problem}>
          {history.value
            ? "Former pods are as of the last answer."
            : "Only pods that the container runtime has are listed."}
        </Problem>
      )}
      {runtime.problem && (
        <Problem problem={runtime.problem}>
          {runtime.value
            ? "The states of containers are as of the last answer."
            : "The states of containers are not known."}
        </Problem>
      )}
      {usage.value && usage.problem && (
        <Problem problem={usage.problem}>CPU and memory are as of the last answer.</Problem>
      )}
      {notice !== undefined && <p class="notice">{notice}</p>}
      {eligibility.problem && (
        <Problem problem={eligibility.problem}>
          {eligibility.value
            ? "Whether pods can be evicted is as of the last answer."
            : "Whether pods can be evicted is not known, nor what their specs contain."}
        </Problem>
      )}
      <p class="quiet" role="status">
        {isWaiting ? "Reading the pods." : !(isEligibilityMissing && wantedEviction) && countText(counts)}
      </p>
      {listed.length > 0 && !isUnsorted && table}
    </div>
  );
}

const columns: readonly (readonly [title: string, key?: SortKey])[] = [
  ["Pod", "name"],
  ["State", "phase"],
  ["Containers"],
  ["Restarts", "restarts"],
  ["CPU", "cpu"],
  ["Memory", "memory"],
  ["Started", "age"],
  ["Owner", "owner"],
  ["QoS", "qos"],
  ["Priority", "priority"],
  ["Can be evicted", "eviction"],
];

const filters = [
  ["", "All pods"],
  ["now", "Can be evicted now"],
  ["later", "Later"],
  ["never", "Never"],
] as const;

function isAwaited({ value, problem }: Answer<unknown>): boolean {
  return !value && !problem;
}

function sorted(pods: ListedPod[], sort: string): ListedPod[] {
  const key = sort.replace(/^-/, "");
  return isSortKey(key) ? sortPods(pods, key, sort.startsWith("-")) : pods;
}

function cellsOf(listed: ListedPod, usage: Answer<ApiAnswers["pods/usage"]>) {
  const { namespace, name, uid, isRecorded, leftAt, eligible, containers, restarts } = listed;
  const pod = eligible?.pod;
  return [
    <PodLink namespace={namespace} name={name} uid={isRecorded ? uid : undefined} />,
    leftAt === null ? (
      <Badge tone={phaseTones[pod?.phase ?? ""] ?? "quiet"}>{shown(pod?.phase ?? "exists", 40)}</Badge>
    ) : (
      <>
        <Badge>deleted</Badge> <Age since={leftAt} />
      </>
    ),
    containers,
    restarts,
    leftAt === null && <Used pod={listed} what="cpu" answer={usage} />,
    leftAt === null && <Used pod={listed} what="memory" answer={usage} />,
    pod?.startTime != null && <Age since={pod.startTime} />,
    shown(ownerText(eligible) ?? "", 120),
    pod && (
      <>
        {pod.qosClass} <small>{pod.qosLevel}</small>
      </>
    ),
    pod?.priority,
    eligible && <Evictable pod={eligible} />,
  ];
}

interface UsedProps {
  pod: ListedPod;
  what: "cpu" | "memory";
  answer: Answer<ApiAnswers["pods/usage"]>;
}

/** What a pod uses of a resource, or why that is unknown. */
function Used({ pod: { usage }, what, answer: { value, problem } }: UsedProps) {
  const amount = what === "cpu" ? usage?.cpu : usage?.memoryBytes;
  if (amount !== undefined)
    return (
      <data class="number" value={amount}>
        {usedText(what, amount)}
      </data>
    );
  const reason =
    (what === "cpu" ? usage?.cpuUnknown : usage?.memoryUnknown) ??
    problem?.message ??
    value?.problems[0] ??
    (value ? "neither the kernel nor the container runtime reports it" : "it is being read");
  return (
    <span class="quiet" title={`Unknown: ${shown(reason, 500)}`}>
      –<span class="unseen"> Unknown: {shown(reason, 500)}</span>
    </span>
  );
}

const phaseTones: Readonly<Record<string, Tone>> = { Running: "ok", Pending: "warn", Failed: "bad" };

function Evictable({ pod: { eviction, reason } }: { pod: EligiblePod }) {
  return (
    <>
      {eviction}
      {reason !== undefined && (
        <small>
          : <Prose text={reason} longest={300} />
        </small>
      )}
    </>
  );
}
