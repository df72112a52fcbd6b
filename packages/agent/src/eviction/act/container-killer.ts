import { isUnsent } from "@nodekeeper/core/grpc";
import { messageOf, withDeadline } from "@nodekeeper/core/lib";
import type { PodCacheEntry, PodStatusReader } from "../../lifecycle/index.ts";
import type { ContainerStatus } from "../../runtime/index.ts";
import type { EvictionContext } from "../context.ts";
import { graceOf, type KillEnd, type Killer, type KillRequest, type KillResult } from "./killer.ts";

/** Stops containers. Succeeds if the container was removed. `CriRuntime` implements it. */
export interface ContainerStopper {
  /** @param timeoutSeconds whole seconds from SIGTERM to SIGKILL */
  stopContainer(id: string, timeoutSeconds: number, signal: AbortSignal): Promise<void>;
}

export interface ContainerKillerOptions extends Pick<EvictionContext, "policy" | "clock"> {
  runtime: ContainerStopper;
  statuses: Pick<PodStatusReader, "getNewerThan">;
}

// Deadline of a fresh reading of the pod's containers.
const STATUS_DEADLINE_MS = 10_000;

/**
 * Evicts by stopping the pod's containers through CRI, like katalyst's container killer. The Pod object is not changed.
 * The kubelet restarts containers by the pod's restart policy, so a later attempt stops only the containers that the
 * first attempt found running.
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
      return again(`containers can't be read from the runtime: ${messageOf(error)}`, false);
    }
    if (containers.length === 0) {
      // Those that the kubelet started since the first attempt may be running.
      const seen = request.containers
        ? "the containers to stop have exited"
        : "no container of the pod was running";
      return { kind: "exited", seen };
    }
    signal.throwIfAborted();
    if (!request.sending()) return { kind: "unsent" };
    const message = `StopContainer ${namesOf(containers)}, grace period ${graceOf(request)} s`;
    const ids = new Set(containers.map(({ id }) => id));
    const chosen = { ...request, containers: ids };
    return { kind: "accepted", message, ended: this.#stop(chosen, containers, signal), containers: ids };
  }

  async #stop(request: KillRequest, containers: ContainerStatus[], signal: AbortSignal): Promise<KillEnd> {
    const { runtime, clock, policy } = this.#options;
    const seconds = graceOf(request);
    // StopContainer may take the release margin beyond the grace period.
    const deadlineMs = seconds * 1000 + policy().releaseMarginMs;
    const results = await Promise.allSettled(
      containers.map(({ id, name }) =>
        withDeadline(clock, { ms: deadlineMs, name: `StopContainer ${name}` }, signal, (stopSignal) =>
          runtime.stopContainer(id, seconds, stopSignal),
        ),
      ),
    );
    signal.throwIfAborted();
    const problems = results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
    if (problems.length > 0) {
      const maybeSent = problems.length < results.length || !problems.every(isUnsent);
      return again(problems.map(messageOf).join("; "), maybeSent);
    }
    return await this.#confirm(request, containers, signal);
  }

  // Confirms the stop by a fresh reading: a container that is still running was not stopped.
  async #confirm(request: KillRequest, stopped: ContainerStatus[], signal: AbortSignal): Promise<KillEnd> {
    try {
      const running = await this.#toStop(request, signal);
      if (running.length === 0) return { kind: "stopped", message: `stopped ${namesOf(stopped)}` };
      return again(`StopContainer succeeded, but still running: ${namesOf(running)}`, true);
    } catch (error) {
      signal.throwIfAborted();
      return again(`StopContainer succeeded, but containers can't be read: ${messageOf(error)}`, true);
    }
  }

  async #toStop({ pod, containers: chosen }: KillRequest, signal: AbortSignal): Promise<ContainerStatus[]> {
    const { statuses, clock } = this.#options;
    const now = clock.monotonic();
    const entry: PodCacheEntry = await withDeadline(
      clock,
      { ms: STATUS_DEADLINE_MS, name: "reading the pod's containers" },
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
