import { status } from "@grpc/grpc-js";
import { ContainerEventType, ContainerState } from "@nodekeeper/core/gen/runtime/v1/api.ts";
import { abortable } from "@nodekeeper/core/lib";
import type { SimulatedRuntime } from "@nodekeeper/testing";
import type { SimulatedContainer } from "../../../packages/testing/src/runtime/model.ts";
import type { Process } from "../machine/process.ts";
import type { ContainerStop, History } from "./history.ts";

/** What happens to the agent's calls of StopContainer, and to containers. */
export interface StopFaults {
  /** Share of calls that fail: some before the container gets SIGTERM, some after it. */
  failedStops: number;
  /** Share of calls that are served or answered late or too early, or are not answered before the calm. */
  slowStops: number;
  /** Share of containers that ignore SIGTERM. */
  deafContainers: number;
}

/** Faults, and chance of their own, so that other worlds do not depend on them. */
export interface StopChance {
  faults: StopFaults;
  random: () => number;
}

// Served late, answered late, not answered before the calm, and answered although the container has not exited.
const slow = ["slow", "late", "hanging", "early"] as const;
// What most programs take to end, and how late the runtime is at most.
const LONGEST_EXIT_MS = 3_000;
const SLOWEST_MS = 8_000;
const SIGTERMED = 143;
const SIGKILLED = 137;

/**
 * Stops containers for the agent, as containerd does: sends SIGTERM once, and SIGKILL at the timeout of a call that is
 * still waiting. A call that the client cancels, or that a restart of containerd ends, does not send SIGKILL any more,
 * but SIGTERM has been sent. Exited and removed containers count as stopped.
 */
export class ContainerStops {
  readonly #process: Process;
  readonly #history: History;
  readonly #runtime: SimulatedRuntime;
  readonly #faults: StopFaults;
  readonly #random: () => number;
  readonly #startedAt = new Map<string, number>();
  /** Containers that have got SIGTERM from the agent. */
  readonly #signalled = new Set<string>();
  readonly #onExit = new Map<string, Set<() => void>>();
  readonly #calm = Promise.withResolvers<void>();
  #isCalm = false;

  /** @param process that of the runtime */
  constructor(process: Process, history: History, runtime: SimulatedRuntime, { faults, random }: StopChance) {
    this.#process = process;
    this.#history = history;
    this.#runtime = runtime;
    this.#faults = faults;
    this.#random = random;
    runtime.subscribe(({ id, type }) => {
      if (type === ContainerEventType.CONTAINER_STARTED_EVENT) this.#startedAt.set(id, process.scheduler.now);
      if (type !== ContainerEventType.CONTAINER_STOPPED_EVENT) return;
      // A call that was answered too early has succeeded, whoever ends the container.
      for (const stop of history.stops)
        if (stop.id === id && stop.isSignalled && stop.answeredAt !== undefined)
          stop.exitedAt ??= process.scheduler.now;
      for (const callback of this.#onExit.get(id) ?? []) callback();
      this.#onExit.delete(id);
    });
  }

  /** Serves StopContainer. @param cancelled aborts if nobody waits any more */
  async stop(id: string, timeoutSeconds: number, cancelled: AbortSignal): Promise<void> {
    // It may be removed before the call is served.
    const container = this.#runtime.containers.get(id);
    const fault = this.#drawFault();
    const calledAt = this.#now;
    if (fault === "slow") await this.#wait(this.#random() * SLOWEST_MS, cancelled);
    const stop = container && this.#record(container, { timeoutSeconds, calledAt }, fault === "refused");
    if (fault === "refused") throw failure("failed to stop container: ttrpc: closed");
    if (stop?.isSignalled) {
      this.#terminate(id, timeoutSeconds);
      if (fault === "failed") throw failure("failed to wait for container: context deadline exceeded");
      if (fault !== "early") {
        await this.#exited(id, timeoutSeconds, cancelled);
        stop.exitedAt ??= this.#history.exits.get(id);
      }
    }
    if (fault === "late") await this.#wait(this.#random() * SLOWEST_MS, cancelled);
    if (fault === "hanging") await abortable(this.#calm.promise, cancelled);
    if (stop) stop.answeredAt = this.#now;
  }

  /** Makes a container of a workload exit by itself. */
  crash(): void {
    const running = [...this.#runtime.containers.values()].filter(
      ({ pod, state }) => state === ContainerState.CONTAINER_RUNNING && pod.namespace === "default",
    );
    const container = running[Math.floor(this.#random() * running.length)];
    if (!container) return;
    this.#history.note("fault", `${container.name} of ${container.pod.name} exits by itself`);
    this.#process.run(() => this.#runtime.exit(container.id, this.#random() < 0.3 ? 0 : 1));
  }

  /** No call fails or is late any more. */
  settle(): void {
    this.#isCalm = true;
    this.#calm.resolve();
  }

  get #now(): number {
    return this.#process.scheduler.now;
  }

  #drawFault(): "refused" | "failed" | (typeof slow)[number] | undefined {
    if (this.#isCalm) return undefined;
    const { failedStops, slowStops } = this.#faults;
    const drawn = this.#random();
    if (drawn < failedStops) return this.#random() < 0.5 ? "refused" : "failed";
    if (drawn >= failedStops + slowStops) return undefined;
    return slow[Math.floor(this.#random() * slow.length)];
  }

  #record(
    { id, pod, state, name }: SimulatedContainer,
    { timeoutSeconds, calledAt }: Pick<ContainerStop, "timeoutSeconds" | "calledAt">,
    isRefused: boolean,
  ): ContainerStop | undefined {
    const history = this.#history;
    const life = history.lives.at(-1);
    if (!life) return undefined;
    const isRunning = state === ContainerState.CONTAINER_RUNNING;
    const running = [...this.#runtime.containers.values()].filter(
      (each) => each.pod.uid === pod.uid && each.state === ContainerState.CONTAINER_RUNNING,
    );
    const stop: ContainerStop = {
      at: this.#now,
      calledAt,
      podUid: pod.uid,
      podName: pod.name,
      id,
      life,
      timeoutSeconds,
      startedAt: this.#startedAt.get(id) ?? 0,
      isSignalled: isRunning && !isRefused,
      running: running.map((each) => each.id),
      isLate: life.endedAt !== undefined,
      exitedAt: undefined,
      answeredAt: undefined,
    };
    history.addStop(stop);
    const how = stop.isSignalled
      ? `within ${timeoutSeconds} s`
      : isRefused
        ? "but fails"
        : "which has exited";
    history.note("containerd", `stops ${name} ${id.slice(0, 12)} of ${pod.name}, ${how}`);
    return stop;
  }

  #terminate(id: string, timeoutSeconds: number): void {
    if (this.#signalled.has(id)) return;
    this.#signalled.add(id);
    const isDeaf = this.#random() < this.#faults.deafContainers;
    const exitCode = this.#random() < 0.3 ? 0 : SIGTERMED;
    const afterMs = this.#random() * LONGEST_EXIT_MS;
    if (timeoutSeconds > 0 && !isDeaf) this.#process.after(afterMs, () => this.#exit(id, exitCode));
  }

  // Resolves when the container has exited.
  async #exited(id: string, timeoutSeconds: number, cancelled: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const callbacks = this.#onExit.get(id) ?? new Set();
    this.#onExit.set(id, callbacks.add(resolve));
    const kill = this.#process.after(timeoutSeconds * 1_000, () => this.#exit(id, SIGKILLED));
    try {
      await abortable(promise, cancelled);
    } finally {
      kill.cancel();
      callbacks.delete(resolve);
    }
  }

  #exit(id: string, exitCode: number): void {
    const container = this.#runtime.containers.get(id);
    if (container?.state !== ContainerState.CONTAINER_RUNNING) return;
    for (const stop of this.#history.stops)
      if (stop.id === id && stop.isSignalled) stop.exitedAt ??= this.#now;
    this.#runtime.exit(id, exitCode, exitCode === 0 ? "Completed" : "Error");
  }

  async #wait(ms: number, cancelled: AbortSignal): Promise<void> {
    await this.#process.clock.sleep(ms, cancelled);
  }
}

function failure(details: string): Error {
  return Object.assign(new Error(details), { code: status.UNKNOWN, details });
}
