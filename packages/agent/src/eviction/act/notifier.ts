import type { Notification } from "@nodekeeper/api/decide";
import type { EventRecorder } from "@nodekeeper/core/kube";
import type { Clock } from "@nodekeeper/core/lib";
import { aboutPod } from "../about-pod.ts";

// An Event for the same pod and plugin is not repeated within this time, milliseconds.
const REPEAT_MS = 5 * 60_000;

/** Notifies pods of soft eviction requests through Events. Only pods with the notification annotation are notified. */
export class Notifier {
  readonly #events: Pick<EventRecorder, "record">;
  readonly #clock: Clock;
  readonly #notifiedAt = new Map<string, number>();

  constructor(events: Pick<EventRecorder, "record">, clock: Clock) {
    this.#events = events;
    this.#clock = clock;
  }

  /** Records an Event for each pod and plugin, at most one in five minutes. */
  notify(notifications: readonly Notification[]): void {
    const now = this.#clock.monotonic();
    for (const [key, at] of this.#notifiedAt) if (now - at >= REPEAT_MS) this.#notifiedAt.delete(key);
    for (const notification of notifications) {
      const { uid, plugin, reason } = notification;
      const key = `${uid}/${plugin}`;
      if (this.#notifiedAt.has(key)) continue;
      this.#notifiedAt.set(key, now);
      this.#events.record({
        type: "Warning",
        reason: "SoftEvictionNotice",
        message: `Soft eviction requested by ${plugin}: ${reason}. The pod is notified, not evicted`,
        regarding: aboutPod(notification),
      });
    }
  }
}
