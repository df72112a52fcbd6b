import type { LifecycleEvent } from "../../live.ts";
import { barsOf, type Pods } from "./bars.ts";

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

/** Returns the bars of events where no other event is unread. */
export function barsOfAll(events: readonly LifecycleEvent[], listed?: Parameters<typeof barsOf>[1]): Pods {
  return barsOf([{ last: Number.POSITIVE_INFINITY, events }], listed);
}
