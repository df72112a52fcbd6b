import { Joined } from "./joined.tsx";
import { PodLink } from "./pod-link.tsx";

/** Pods by "<namespace>/<name>", each linked to the pod. */
export function PodLinks({ names }: { names: readonly string[] }) {
  const items = names.map((pod) => {
    const [namespace = "", name = ""] = pod.split("/");
    return <PodLink namespace={namespace} name={name} />;
  });
  return <Joined items={items} />;
}
