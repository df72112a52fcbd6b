import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { addressOf } from "../../address.ts";
import type { Live } from "../../live.ts";
import { Problem, Waiting } from "../../parts/notice.tsx";
import { useAnswer } from "../../parts/use-answer.ts";
import { shown } from "../../text.ts";
import { EvictionIsOff } from "./eviction-is-off.tsx";
import { OtherPods } from "./other-pods.tsx";
import { PodEvents } from "./pod-events.tsx";
import { podVersion } from "./pod-version.ts";
import { RoundsSection } from "./rounds-section.tsx";
import { RuntimeSection } from "./runtime-section.tsx";
import { Steps } from "./steps.tsx";
import { isUnderWay, newestFirst, recordedPod, runtimePod } from "./story.ts";
import { VerdictPanel } from "./verdict-panel.tsx";

const UNDER_WAY_EVERY_MS = 5_000;

interface Props {
  namespace: string;
  name: string;
  /** Selects one of several pods of this name. Default: the one the agent considers most relevant. */
  uid: string | undefined;
  live: Live;
}

/** Why a pod was evicted, deleted or kept, and what the container runtime observed of it. */
export function OnePod({ namespace, name, uid: asked, live }: Props) {
  const [known, setKnown] = useState<string | undefined>(asked);
  const [isFollowed, setFollowed] = useState(false);
  const beat = useBeat(isFollowed ? UNDER_WAY_EVERY_MS : undefined);
  const version = useLiveVersion(live, `${podVersion(live, known)} ${beat}`);
  const isOff = live.node?.eviction === null;
  const query = isOff || !live.node ? undefined : { pod: asked ?? `${namespace}/${name}` };
  const explained = useAnswer("eviction/explain", query, version);
  const runtime = useAnswer("pods", { namespace, name }, version);
  const explanation = explained.value;
  const named = newestFirst(runtime.value?.items ?? []);
  const uid = explanation?.uid ?? asked ?? named[0]?.uid;
  if (uid !== known) setKnown(uid);
  const follows = explanation !== undefined && isUnderWay(explanation);
  if (follows !== isFollowed) setFollowed(follows);

  const isMirror = (explanation && recordedPod(explanation)?.isMirror) ?? false;
  const running = runtimePod(named, uid, isMirror);
  const title = `${shown(namespace)}/${shown(name)}`;
  const isWaiting = !explanation && !explained.problem && !isOff;
  // Events arrive continuously on a busy node, so the long parts are rerendered only if the explanation changes.
  const story = useMemo(() => explanation && <RoundsSection explanation={explanation} />, [explanation]);
  const steps = useMemo(() => explanation && <Steps explanation={explanation} />, [explanation]);
  return (
    <>
      <p class="pod-back">
        <a href={addressOf("pod")}>All pods</a>
      </p>
      <h2 class="pod-name">{title}</h2>
      {isWaiting && <Waiting>Reading the records.</Waiting>}
      {isOff && <EvictionIsOff />}
      {explained.problem && (
        <Problem problem={explained.problem}>
          {!explanation && running && "What the container runtime has of the pod is below."}
        </Problem>
      )}
      <div class="columns">
        <div class="stack">
          {explanation && <VerdictPanel explanation={explanation} node={live.node?.nodeName ?? ""} />}
          {story}
        </div>
        <div class="stack">
          <OtherPods
            namespace={namespace}
            name={name}
            uid={uid}
            isOn={!isOff && live.node !== undefined}
            version={version}
            runtime={named.filter((pod) => pod !== running)}
          />
          {steps}
          <RuntimeSection pod={running} runtime={runtime} exits={explanation?.history?.exits ?? []} />
          {uid !== undefined && <PodEvents uid={running?.uid ?? uid} live={live} />}
        </div>
      </div>
    </>
  );
}

/** Returns a counter incremented every `everyMs` milliseconds. Stopped if that is undefined. */
function useBeat(everyMs: number | undefined): number {
  const [count, setCount] = useState(0);
  useEffect(() => {
    if (everyMs === undefined) return;
    const timer = setInterval(() => setCount((before) => before + 1), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return count;
}

/** Returns a version that is stable while the agent is unreachable, and changes when it is reachable again. */
function useLiveVersion({ connection }: Pick<Live, "connection">, version: string): string {
  const lostAt = useRef(0);
  const kept = useRef(version);
  if (connection.state === "lost") lostAt.current = connection.at;
  else kept.current = `${version} ${lostAt.current}`;
  return kept.current;
}
