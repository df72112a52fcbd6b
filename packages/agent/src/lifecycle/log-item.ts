import type { Pod } from "../runtime/index.ts";
import type { LogPosition } from "./cursor.ts";
import type { PodLifecycleEvent } from "./events.ts";

/** What a consumer gets: events in order, and a snapshot where it can't be given all events since its position. */
export type LogItem =
  | { readonly kind: "event"; readonly position: LogPosition; readonly event: PodLifecycleEvent }
  | {
      readonly kind: "snapshot";
      /** The events that follow are those after this one. */
      readonly position: LogPosition;
      /** `begin`: the consumer named no position. `fellOff`: events it did not get are gone from the log. */
      readonly why: "begin" | "fellOff";
      /** How many events it missed; undefined where its position was of another log. */
      readonly missed: number | undefined;
      readonly pods: readonly Pod[];
    };
