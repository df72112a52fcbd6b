import type { EventRecorder } from "@nodekeeper/core/kube";
import type { Clock } from "@nodekeeper/core/lib";
import type { Notification } from "../decide/decision.ts";

// An Event about the same is worth repeating after this time, milliseconds: a round comes every few seconds.
const REPEAT_MS = 5 * 60_000;

/** Notifies pods that are annotated for it, by Events, of soft evictions that they were named for. */
export class Notifier {
  readonly #events: Pick<EventRecorder, "record">;
  readonly #clock: Clock;
  readonly #toldAt = new Map<string, number>();

  constructor(events: Pick<EventRecorder, "record">, clock: Clock) {
    this.#events = events;
    this.#clock = clock;
  }

  tell(notifications: readonly Notification[]): void {
    const now = this.#clock.monotonic();
    for (const [key, at] of this.#toldAt) if (now - at >= REPEAT_MS) this.#toldAt.delete(key);
    for (const { uid, namespace, name, plugin, reason } of notifications) {
      const key = `${uid}/${plugin}`;
      if (this.#toldAt.has(key)) continue;
      this.#toldAt.set(key, now);
      this.#events.record({
        type: "Warning",
        reason: "SoftEvictionNotice",
        message: `The pod may have to leave this node: ${plugin} says ${reason}`,
        regarding: { apiVersion: "v1", kind: "Pod", namespace, name, uid },
      });
    }
  }
}
