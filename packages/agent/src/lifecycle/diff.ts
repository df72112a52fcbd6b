import type { ListedContainer, Pod } from "../runtime/index.ts";
import { type PodLifecycleEventType, type RecordedState, recordedState } from "./events.ts";

/** ContainerChanged triggers an inspection of the pod. It is not emitted. */
type TransitionType = Exclude<PodLifecycleEventType, "PodSync"> | "ContainerChanged";

export interface Transition {
  type: TransitionType;
  container: ListedContainer;
}

/**
 * Returns the transitions between two container states, as generateEvents in kubelet
 * pkg/kubelet/pleg/generic.go does.
 */
export function transitionTypes(old: RecordedState, current: RecordedState): readonly TransitionType[] {
  if (old === current) return [];
  switch (current) {
    case "running":
      return ["ContainerStarted"];
    case "exited":
      return ["ContainerDied"];
    case "unknown":
      return ["ContainerChanged"];
    case "missing":
      return old === "exited" ? ["ContainerRemoved"] : ["ContainerDied", "ContainerRemoved"];
  }
}

/**
 * Returns the transitions of a pod between two readings. A pod that is not listed is undefined. Exits and
 * removals come before starts. Containers exit before their sandboxes, and sandboxes start before their
 * containers. Otherwise, older containers come first.
 */
export function diffPods(old: Pod | undefined, current: Pod | undefined): Transition[] {
  if (samePods(old, current)) return [];
  const before = byId(old);
  const after = byId(current);
  const ends: Transition[] = [];
  const starts: Transition[] = [];
  const compare = (was: ListedContainer | undefined, is: ListedContainer | undefined) => {
    const container = is ?? was;
    if (!container) return;
    for (const type of transitionTypes(recordedState(was?.state), recordedState(is?.state))) {
      (type === "ContainerStarted" ? starts : ends).push({ type, container });
    }
  };
  // Lists are sorted newest first.
  for (const [id, was] of [...before].reverse()) compare(was, after.get(id));
  for (const [id, is] of [...after].reverse()) if (!before.has(id)) compare(undefined, is);
  return [
    ...ends.filter(isOfContainer),
    ...ends.filter(isOfSandbox),
    ...starts.filter(isOfSandbox),
    ...starts.filter(isOfContainer),
  ];
}

/**
 * Returns whether two readings have the same containers in the same states and order. A fast check that
 * covers most pods.
 */
export function samePods(old: Pod | undefined, current: Pod | undefined): boolean {
  if (!old || !current) return old === current;
  return (
    sameContainers(old.containers, current.containers) && sameContainers(old.sandboxes, current.sandboxes)
  );
}

/**
 * Returns whether a container that was running in the last reading is missing in this one without an observed
 * exit.
 */
export function vanishedRunning(old: Pod | undefined, current: Pod | undefined): boolean {
  if (!old) return false;
  const after = byId(current);
  return [...byId(old).values()].some(({ id, state }) => state === "running" && !after.has(id));
}

function sameContainers(old: readonly ListedContainer[], current: readonly ListedContainer[]): boolean {
  if (old.length !== current.length) return false;
  for (let at = 0; at < old.length; at++) {
    if (old[at]!.id !== current[at]!.id || old[at]!.state !== current[at]!.state) return false;
  }
  return true;
}

// If a runtime lists an ID twice, the first entry counts, because lists are sorted newest first.
function byId(pod: Pod | undefined): Map<string, ListedContainer> {
  const found = new Map<string, ListedContainer>();
  for (const container of [...(pod?.containers ?? []), ...(pod?.sandboxes ?? [])]) {
    if (!found.has(container.id)) found.set(container.id, container);
  }
  return found;
}

function isOfContainer({ container }: Transition): boolean {
  return container.kind === "container";
}

function isOfSandbox({ container }: Transition): boolean {
  return container.kind === "sandbox";
}
