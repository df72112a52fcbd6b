import { useMemo, useState } from "preact/hooks";
import { addressOf, goTo } from "../../address.ts";
import type { Live } from "../../live.ts";
import { Badge } from "../../parts/badge.tsx";
import { Problem } from "../../parts/notice.tsx";
import { PodLink } from "../../parts/pod-link.tsx";
import { Table } from "../../parts/table.tsx";
import { Age } from "../../parts/time.tsx";
import { useAnswer } from "../../parts/use-answer.ts";
import { useDeferred } from "../../parts/use-deferred.ts";
import { shown } from "../../text.ts";
import { EvictionIsOff } from "./eviction-is-off.tsx";
import { type ListedPod, listPods } from "./listed-pods.ts";

const MOST_SHOWN = 200;
const PAUSE_MS = 200;
// Two names of 253 characters and a slash.
const LONGEST_TEXT = 507;

/** Current and former pods of the node, for selection. */
export function PodSearch({ live, text }: { live: Live; text: string }) {
  const [typed, setTyped] = useState(text);
  const wanted = useDeferred(typed.trim(), PAUSE_MS);
  const version = live.events.at(-1)?.sequence;
  const isOff = live.node?.eviction === null;
  const query = isOff || !live.node ? undefined : { text: wanted || undefined, limit: MOST_SHOWN };
  const history = useAnswer("eviction/pods", query, version);
  const runtime = useAnswer("pods", { limit: 1_000 }, version);
  const found = listPods(wanted, history.value?.items ?? [], runtime.value?.items ?? []);
  const listed = found.slice(0, MOST_SHOWN);
  const table = useMemo(
    () => (
      <Table
        label="Pods"
        columns={["Pod", "State", "Containers", "UID"]}
        rows={listed.map((pod) => ({ key: pod.uid, cells: cellsOf(pod) }))}
      />
    ),
    [wanted, history.value, runtime.value],
  );
  const isWaiting = isOff ? !runtime.value && !runtime.problem : !history.value && !history.problem;
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
                goTo(addressOf("pod", [], { text: value.trim() || undefined }), "replace");
              }}
            />
          </label>
        </form>
      </search>
      {isOff && <EvictionIsOff />}
      {history.problem && (
        <Problem problem={history.problem}>Only pods that the container runtime has are listed.</Problem>
      )}
      {runtime.problem && (
        <Problem problem={runtime.problem}>The states of containers are not known.</Problem>
      )}
      <p class="quiet" role="status">
        {isWaiting
          ? "Reading the pods."
          : countText(found.length, listed.length, history.value?.more ?? false)}
      </p>
      {listed.length > 0 && table}
    </div>
  );
}

function cellsOf({ namespace, name, uid, isRecorded, leftAt, containers }: ListedPod) {
  return [
    <PodLink namespace={namespace} name={name} uid={isRecorded ? uid : undefined} />,
    leftAt === null ? (
      <Badge tone="ok">exists</Badge>
    ) : (
      <>
        <Badge>deleted</Badge> <Age since={leftAt} />
      </>
    ),
    containers,
    <code>{shown(uid)}</code>,
  ];
}

function countText(found: number, listed: number, more: boolean): string {
  if (found === 0)
    return "No pod that is or was on this node has such a name. Pods of other nodes are not known here.";
  if (more || listed < found) return `The first ${listed}; write more of the name to see others.`;
  return found === 1 ? "1 pod" : `${found} pods`;
}
