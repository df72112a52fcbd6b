import type { LifecycleEvent } from "../../live.ts";

/** An event for tests: at `sequence` seconds, a start of a container, unless `more` has something else. */
export function eventAt(sequence: number, more: Partial<LifecycleEvent> = {}): LifecycleEvent {
  return {
    sequence,
    type: "ContainerStarted",
    at: sequence * 1_000,
    pod: { uid: "uid-web", namespace: "default", name: "web" },
    container: { id: `id-${sequence}`, name: "main", kind: "container" },
    reason: "",
    ...more,
  };
}
