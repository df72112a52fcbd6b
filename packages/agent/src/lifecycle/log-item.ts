import type { Pod } from "../runtime/index.ts";
import type { LogPosition } from "./cursor.ts";
import type { PodLifecycleEvent } from "./events.ts";

/** Item for a consumer: an event in order, or a snapshot if the events since its position are not all retained. */
export type LogItem =
  | { readonly kind: "event"; readonly position: LogPosition; readonly event: PodLifecycleEvent }
  | {
      readonly kind: "snapshot";
      /** Position of the snapshot: the following events come after it. */
      readonly position: LogPosition;
      /** `begin`: the consumer gave no position. `fellOff`: events after its position are no longer retained. */
      readonly why: "begin" | "fellOff";
      /** Number of events missed; undefined if the position is of another log. */
      readonly missed: number | undefined;
      readonly pods: readonly Pod[];
    };
