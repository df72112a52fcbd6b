import type { LifecycleEvent } from "../../live.ts";

/** Returns an event for tests: a container start at `sequence` seconds, unless `more` overrides it. */
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
