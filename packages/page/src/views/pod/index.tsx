import type { ViewProps } from "../../view-props.ts";
import { OnePod } from "./one-pod.tsx";
import { PodSearch } from "./pod-search.tsx";

/**
 * `#/pod/<namespace>/<name>?uid=`: why a pod was evicted, deleted or kept.
 * `#/pod?text=&sort=&eviction=`: the list of pods.
 */
export function PodView({ live, address: { path, query } }: ViewProps) {
  const [namespace, name] = path;
  if (!namespace || !name)
    return <PodSearch live={live} text={namespace ?? query.get("text") ?? ""} query={query} />;
  const uid = query.get("uid") ?? undefined;
  return (
    <OnePod key={`${namespace}/${name} ${uid}`} namespace={namespace} name={name} uid={uid} live={live} />
  );
}
