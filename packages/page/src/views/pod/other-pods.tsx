import { addressOf } from "../../address.ts";
import type { ApiAnswers } from "../../api.ts";
import { useAnswer } from "../../parts/use-answer.ts";
import { shown } from "../../text.ts";

interface Props {
  namespace: string;
  name: string;
  /** Of the pod that is shown. */
  uid: string | undefined;
  /** Whether it was asked for by its UID: the answer then names no others. */
  isByUid: boolean;
  others: readonly string[];
  runtime: ApiAnswers["pods"]["items"];
}

/** Other pods that had the name, as those of a StatefulSet have. */
export function OtherPods({ namespace, name, uid, isByUid, others, runtime }: Props) {
  const { value } = useAnswer("eviction/explain", isByUid ? { pod: `${namespace}/${name}` } : undefined);
  const running = new Set(runtime.map((pod) => pod.uid));
  const uids = new Set([...running, ...others, ...(value ? [value.uid, ...value.otherUids] : [])]);
  uids.delete(uid ?? "");
  if (uids.size === 0) return null;
  return (
    <nav aria-label="Other pods of this name" class="notice">
      <p>{uids.size === 1 ? "Another pod has or had" : `${uids.size} other pods have or had`} this name:</p>
      <ul>
        {[...uids].map((other) => (
          <li key={other}>
            <a href={addressOf("pod", [namespace, name], { uid: other })}>
              <code>{shown(other)}</code>
            </a>{" "}
            {running.has(other) && "(the container runtime has it now)"}
          </li>
        ))}
      </ul>
    </nav>
  );
}
