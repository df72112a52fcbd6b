import { type Clock, messageOf, withDeadline } from "@nodekeeper/core/lib";
import type { PodCacheEntry, PodStatusReader } from "../../lifecycle/index.ts";
import type { ContainerStatus } from "../../runtime/index.ts";
import { graceOf, type KillEnd, type Killer, type KillRequest, type KillResult } from "./killer.ts";

/** Stops containers; one that is gone is stopped. `CriRuntime` is one. */
export interface ContainerStopper {
  /** @param timeoutSeconds whole seconds from SIGTERM to SIGKILL */
  stopContainer(id: string, timeoutSeconds: number, signal: AbortSignal): Promise<void>;
}

export interface ContainerKillerOptions {
  runtime: ContainerStopper;
  statuses: Pick<PodStatusReader, "getNewerThan">;
  clock: Clock;
  /** How long beyond the grace period stopping may take, milliseconds. */
  marginMs: () => number;
}

// How long the runtime may take to be read anew.
const STATUS_DEADLINE_MS = 10_000;

/**
 * Evicts by stopping the pod's containers through CRI, past the API server: for pods that should only be put down, as
 * with a controller on the node. The kubelet starts them again where their restart policy says so; a later try therefore
 * stops only what the first one set out to stop.
 */
export class ContainerKiller implements Killer {
  readonly name = "containerStop";
  readonly #options: ContainerKillerOptions;

  constructor(options: ContainerKillerOptions) {
    this.#options = options;
  }

  async kill(request: KillRequest, signal: AbortSignal): Promise<KillResult> {
    let containers: ContainerStatus[];
    try {
      containers = await this.#toStop(request, signal);
    } catch (error) {
      signal.throwIfAborted();
      return again(`containers can't be read: ${messageOf(error)}`, false);
    }
    if (containers.length === 0) return { kind: "gone", message: "none of its containers runs any longer" };
    const message = `StopContainer of ${namesOf(containers)}, ${graceOf(request)} s`;
    const ids = new Set(containers.map(({ id }) => id));
    const chosen = { ...request, containers: ids };
    return { kind: "accepted", message, ended: this.#stop(chosen, containers, signal), containers: ids };
  }

  async #stop(request: KillRequest, containers: ContainerStatus[], signal: AbortSignal): Promise<KillEnd> {
    const { runtime, clock, marginMs } = this.#options;
    const seconds = graceOf(request);
    const results = await Promise.allSettled(
      containers.map(({ id, name }) =>
        withDeadline(clock, seconds * 1000 + marginMs(), `StopContainer of ${name}`, signal, (stopSignal) =>
          runtime.stopContainer(id, seconds, stopSignal),
        ),
      ),
    );
    signal.throwIfAborted();
    const problems = results.flatMap((result) =>
      result.status === "rejected" ? [messageOf(result.reason)] : [],
    );
    if (problems.length > 0) return again(problems.join("; "), true);
    return await this.#confirm(request, containers, signal);
  }

  // The runtime's answer is checked against a reading of its own: a container that still runs was not stopped.
  async #confirm(request: KillRequest, stopped: ContainerStatus[], signal: AbortSignal): Promise<KillEnd> {
    try {
      const running = await this.#toStop(request, signal);
      if (running.length === 0) return { kind: "gone", message: `stopped ${namesOf(stopped)}` };
      return again(`the runtime says stopped, but still running: ${namesOf(running)}`, true);
    } catch (error) {
      signal.throwIfAborted();
      return again(`the stop can't be confirmed: ${messageOf(error)}`, true);
    }
  }

  async #toStop({ pod, containers: chosen }: KillRequest, signal: AbortSignal): Promise<ContainerStatus[]> {
    const { statuses, clock } = this.#options;
    const now = clock.monotonic();
    const entry: PodCacheEntry = await withDeadline(
      clock,
      STATUS_DEADLINE_MS,
      "reading its containers",
      signal,
      (readSignal) => statuses.getNewerThan(pod.uid, now, readSignal),
    );
    if (entry.error) throw entry.error;
    return entry.status.containers.filter(
      ({ id, kind, state }) => kind === "container" && state === "running" && (chosen?.has(id) ?? true),
    );
  }
}

function again(message: string, maybeSent: boolean): KillEnd {
  return { kind: "retry", message, retryAfterMs: undefined, maybeSent };
}

function namesOf(containers: readonly ContainerStatus[]): string {
  return containers.map(({ name }) => name).join(", ");
}
