import type { Clock, Logger, Timer } from "@nodekeeper/core/lib";
import type { EventSource, PodLifecycleEvent, PodStatusReader } from "../../lifecycle/index.ts";
import type { PodReference } from "../decide/pods.ts";
import type { EvictionStep } from "../parts.ts";

export interface ContainerDeathsOptions {
  events: EventSource;
  statuses: Pick<PodStatusReader, "get">;
  /** How long containers of a pod that the API server no longer has are awaited, milliseconds. */
  marginMs: () => number;
  clock: Clock;
  log: Logger;
}

/**
 * Follows the containers of pods that are evicted. A pod that is deleted by force leaves the API server before its
 * containers leave the node: these are awaited for a while, and reported as steps where they run on. How containers
 * exit is in the history of pods.
 */
export class ContainerDeaths {
  readonly #options: ContainerDeathsOptions;
  /** By UID; the timer where the pod is gone and its containers are not. */
  readonly #followed = new Map<string, Timer | undefined>();
  #steps: EvictionStep[] = [];

  constructor(options: ContainerDeathsOptions) {
    this.#options = options;
  }

  /** Reads the log of events until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { events } = this.#options;
    try {
      for await (const item of events.read({ after: events.position }, signal)) {
        if (item.kind === "event") this.#onEvent(item.event);
      }
    } finally {
      for (const timer of this.#followed.values()) timer?.cancel();
      this.#followed.clear();
    }
  }

  /** A pod's eviction begins. */
  follow(uid: string): void {
    if (!this.#followed.has(uid)) this.#followed.set(uid, undefined);
  }

  /** A pod's eviction has come to nothing. */
  leave(uid: string): void {
    this.#followed.get(uid)?.cancel();
    this.#followed.delete(uid);
  }

  /** The API server no longer has the pod: what still runs of it is awaited for a while. */
  podGone({ uid, namespace, name }: PodReference): void {
    const { clock, log, marginMs } = this.#options;
    this.leave(uid);
    const running = this.running(uid);
    if (running.length === 0) return;
    this.#step(uid, `still running on the node: ${running.join(", ")}`);
    const timer = clock.after(marginMs(), () => {
      this.#followed.delete(uid);
      const left = this.running(uid);
      if (left.length === 0) return;
      this.#step(uid, `still running on the node, no longer awaited: ${left.join(", ")}`);
      log.warn({ pod: { namespace, name }, running: left }, "containers of an evicted pod still run");
    });
    this.#followed.set(uid, timer);
  }

  /** Names of a pod's containers that ran when the runtime was last read. */
  running(uid: string): string[] {
    const { containers } = this.#options.statuses.get(uid).status;
    return containers.flatMap(({ name, state }) => (state === "running" ? [name] : []));
  }

  /** What happened since the last call. */
  takeSteps(): EvictionStep[] {
    const steps = this.#steps;
    this.#steps = [];
    return steps;
  }

  // The sandbox is the last to stop: nothing of the pod runs after it.
  #onEvent({ type, pod: { uid }, container }: PodLifecycleEvent): void {
    if (type !== "ContainerDied" || container?.kind !== "sandbox") return;
    if (this.#followed.get(uid) !== undefined) this.leave(uid);
  }

  #step(uid: string, message: string): void {
    this.#steps.push({ uid, at: this.#options.clock.now(), message });
  }
}
