import type { Pod } from "../runtime/index.ts";
import type { LogPosition } from "./cursor.ts";
import type { PodLifecycleEvent } from "./events.ts";

/**
 * Item for a consumer: the next event, or a snapshot if not all events since the consumer's position are
 * retained.
 */
export type LogItem =
  | { readonly kind: "event"; readonly position: LogPosition; readonly event: PodLifecycleEvent }
  | {
      readonly kind: "snapshot";
      /** Position of the snapshot. The events that follow come after it. */
      readonly position: LogPosition;
      /**
       * `begin`: the consumer specified no position. `fellOff`: events after its position are no longer
       * retained.
       */
      readonly why: "begin" | "fellOff";
      /** Number of missed events. Undefined if the position belongs to another log. */
      readonly missed: number | undefined;
      readonly pods: readonly Pod[];
    };
