import { addressOf } from "../address.ts";
import { shown } from "../text.ts";

/** Pods by "<namespace>/<name>", each a link to the pod. */
export function PodLinks({ names }: { names: readonly string[] }) {
  return (
    <>
      {names.map((pod, place) => (
        <span key={pod}>
          {place > 0 && ", "}
          <a href={addressOf("pod", pod.split("/"))}>{shown(pod)}</a>
        </span>
      ))}
    </>
  );
}
