import type { EventRecorder } from "@nodekeeper/core/kube";
import type { Clock } from "@nodekeeper/core/lib";
import type { Notification } from "../decide/decision.ts";

// How long an Event with the same subject is not repeated, milliseconds.
const REPEAT_MS = 5 * 60_000;

/** Notifies pods of soft eviction requests by Events, where they have the notification annotation. */
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
    for (const { uid, namespace, name, plugin, reason } of notifications) {
      const key = `${uid}/${plugin}`;
      if (this.#notifiedAt.has(key)) continue;
      this.#notifiedAt.set(key, now);
      this.#events.record({
        type: "Warning",
        reason: "SoftEvictionNotice",
        message: `Soft eviction requested by ${plugin}: ${reason}. The pod is notified, not evicted`,
        regarding: { apiVersion: "v1", kind: "Pod", namespace, name, uid },
      });
    }
  }
}
