import { PodLink } from "./pod-link.tsx";

/** Pods by "<namespace>/<name>", each linked to the pod. */
export function PodLinks({ names }: { names: readonly string[] }) {
  return (
    <>
      {names.map((pod, place) => {
        const [namespace = "", name = ""] = pod.split("/");
        return (
          <span key={pod}>
            {place > 0 && ", "}
            <PodLink namespace={namespace} name={name} />
          </span>
        );
      })}
    </>
  );
}
