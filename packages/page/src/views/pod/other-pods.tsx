import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { addressOf } from "../../address.ts";
import { Age } from "../../parts/time.tsx";
import { useAnswer } from "../../parts/use-answer.ts";
import { shown } from "../../text.ts";

interface Props {
  namespace: string;
  name: string;
  /** UID of the pod shown. */
  uid: string | undefined;
  /** Whether pod history is recorded. */
  isOn: boolean;
  version: string;
  /** Other pods of this name in the container runtime. */
  runtime: ApiAnswers["pods"]["items"];
}

/** Other current or former pods of this name, such as those of a StatefulSet, by UID. */
export function OtherPods({ namespace, name, uid, isOn, version, runtime }: Props) {
  const fullName = `${namespace}/${name}`;
  const { value } = useAnswer("eviction/pods", isOn ? { text: fullName, limit: 1_000 } : undefined, version);
  const recorded = value?.items.filter((pod) => pod.namespace === namespace && pod.name === name) ?? [];
  const known = new Set(recorded.map((pod) => pod.uid));
  const others = [
    ...runtime.filter((pod) => !known.has(pod.uid)).map((pod) => ({ uid: pod.uid, leftAt: null })),
    ...recorded,
  ].filter((pod) => pod.uid !== uid);
  if (uid === undefined || others.length === 0) return null;
  return (
    <nav aria-label="Other pods of this name" class="notice">
      <p>
        {others.length === 1 ? "Another pod has or had" : `${others.length} other pods have or had`} this
        name:
      </p>
      <ul>
        {others.map(({ uid: other, leftAt }) => (
          <li key={other}>
            <a href={addressOf("pod", [namespace, name], { uid: other })}>
              <code>{shown(other)}</code>
            </a>{" "}
            {leftAt === null ? (
              "exists"
            ) : (
              <>
                deleted <Age since={leftAt} />
              </>
            )}
          </li>
        ))}
      </ul>
    </nav>
  );
}
