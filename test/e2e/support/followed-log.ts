import type { PodLifecycleClient, PodLifecycleEvent, PodLifecycleItem } from "@nodekeeper/sdk";

/** A consumer of an agent's event log that continues over the agent's restarts. */
export class FollowedLog {
  readonly events: PodLifecycleEvent[] = [];
  /** Events by the container or sandbox that they are about. PodSync is about none. */
  readonly byContainer = new Map<string, PodLifecycleEvent[]>();
  /** How often it was given all pods, as at its beginning. */
  snapshots = 0;
  readonly #controller = new AbortController();
  readonly #done: Promise<void>;

  constructor(client: PodLifecycleClient) {
    this.#done = this.#follow(client);
  }

  /** What happened in a pod, in order: "Started app", "Died app 3", "Removed app"; a sandbox is called so. */
  ofPod(uid: string): string[] {
    return this.events
      .filter((event) => event.pod.uid === uid)
      .map(({ type, container, exitCode }) =>
        [type.replace("Container", ""), container?.name || container?.kind, exitCode]
          .filter((word) => word !== undefined)
          .join(" "),
      );
  }

  async stop(): Promise<void> {
    this.#controller.abort();
    await this.#done;
  }

  async #follow(client: PodLifecycleClient): Promise<void> {
    for await (const item of client.watch({}, this.#controller.signal)) this.#take(item);
  }

  #take(item: PodLifecycleItem): void {
    if (item.kind === "snapshot") this.snapshots++;
    if (item.kind !== "event") return;
    this.events.push(item.event);
    const id = item.event.container?.id;
    if (id === undefined) return;
    this.byContainer.set(id, [...(this.byContainer.get(id) ?? []), item.event]);
  }
}
