import type { EvictionProgress } from "@nodekeeper/api/decide";
import type { WorkQueue } from "@nodekeeper/core/lib";
import type { EvictionContext } from "../context.ts";
import type { EvictionLedger } from "../ledger.ts";
import type { EvictedContainers } from "./evicted-containers.ts";
import type { EvictionEnd, EvictionJournal } from "./eviction-journal.ts";
import type { EvictionTask } from "./eviction-task.ts";
import type { KillerHealth } from "./killer-health.ts";
import { podEndOf } from "./pod-end.ts";

export interface EvictionTasksOptions {
  context: Pick<EvictionContext, "clock" | "metrics">;
  ledger: Pick<EvictionLedger, "progress">;
  journal: EvictionJournal;
  /** Undefined if no container runtime is configured. */
  containers: Pick<EvictedContainers, keyof EvictedContainers> | undefined;
  health: KillerHealth;
  /** The evictor's queue. Keys are UIDs. */
  queue: Pick<WorkQueue, "add" | "cancel">;
}

// Bounds memory if the burst is unlimited.
export const MOST_UNDER_WAY = 1_000;

/** The evictions in progress. Records the steps, progress and outcomes of each, and removes it when it ends. */
export class EvictionTasks {
  readonly #options: EvictionTasksOptions;
  readonly #tasks = new Map<string, EvictionTask>();

  constructor(options: EvictionTasksOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#tasks.size;
  }

  get(uid: string): EvictionTask | undefined {
    return this.#tasks.get(uid);
  }

  /** Returns the eviction that has waited longest for its acceptance, of those that this process decided. */
  oldestWaiting(): EvictionTask | undefined {
    return [...this.#tasks.values()].find(({ phase, isFollowed }) => phase === "waiting" && !isFollowed);
  }

  /** False after the task's end. */
  isUnderWay(task: EvictionTask): boolean {
    return this.#tasks.get(task.pod.uid) === task;
  }

  /**
   * Adds a task, records its first step and queues it. Does nothing if the pod is already being evicted. If more than
   * `MOST_UNDER_WAY` evictions are in progress, the task ends as failed.
   */
  add(task: EvictionTask, step: string): void {
    const { containers, journal, queue } = this.#options;
    const { uid } = task.pod;
    if (this.#tasks.has(uid)) return;
    this.#tasks.set(uid, task);
    if (this.#tasks.size > MOST_UNDER_WAY) {
      this.end(task, { result: "failed", message: `${MOST_UNDER_WAY} evictions are already in progress` });
      return;
    }
    containers?.follow(uid);
    this.#gauge();
    journal.step(task, step);
    queue.add(uid);
  }

  /** Records that a request is about to be sent: each counts for limits. Returns false if it can't be recorded. */
  sending(task: EvictionTask): boolean {
    const { context, ledger } = this.#options;
    const at = context.clock.monotonic();
    const { uid } = task.pod;
    if (!ledger.progress({ uid, stage: "sending", at, deadline: null, ...stopsOf(task) })) return false;
    task.sendingAt ??= at;
    return true;
  }

  /** Records that the API server accepted a request, or that the containers were stopped. */
  accepted(task: EvictionTask): void {
    const { health, journal } = this.#options;
    health.accepted();
    journal.accepted(task);
  }

  /** Records that the end of the pod is awaited. */
  awaited(task: EvictionTask, stage: "accepted" | "followed"): void {
    const { context, ledger } = this.#options;
    const { deadline = null } = task;
    task.phase = "sent";
    this.#gauge();
    const at = context.clock.monotonic();
    ledger.progress({ uid: task.pod.uid, stage, at, deadline, ...stopsOf(task) });
  }

  /** Returns the names of the pod's running containers; undefined if no container runtime is configured. */
  running({ pod }: EvictionTask): string[] | undefined {
    return this.#options.containers?.running(pod.uid);
  }

  /** Reports once that the pod is still terminating after its deadline. The pod is followed until it is deleted. */
  overdue(task: EvictionTask): void {
    if (task.isOverdue) return;
    task.isOverdue = true;
    const running = this.running(task) ?? [];
    const left = running.length > 0 ? `; still running: ${running.join(", ")}` : "";
    this.#options.journal.overdue(
      task,
      `the pod is still terminating after its grace period and the release margin${left}`,
    );
  }

  /** Ends a task because its pod has ended. @param seen as for `podEndOf` */
  endWithPod(task: EvictionTask, seen: string): void {
    this.end(task, podEndOf(task, seen));
  }

  end(task: EvictionTask, end: EvictionEnd): void {
    const { containers, health, journal, queue } = this.#options;
    const { pod } = task;
    this.#tasks.delete(pod.uid);
    queue.cancel(pod.uid);
    // This process has made no attempt of an eviction that it only follows.
    const wasTried = !task.isFollowed && (task.sendingAt !== undefined || task.tries > 0);
    if (end.result === "failed" && wasTried && task.requests !== "accepted") health.failed(end.message);
    journal.ended(task, end);
    this.#gauge();
    // The kubelet may have started stopped containers again.
    if (end.result === "terminated" && !task.stopsContainers) containers?.podDeleted(pod);
    else containers?.forget(pod.uid);
  }

  #gauge(): void {
    const { underWay } = this.#options.context.metrics;
    const tasks = [...this.#tasks.values()];
    const sent = tasks.filter(({ phase }) => phase === "sent").length;
    underWay.set({ phase: "sent" }, sent);
    underWay.set({ phase: "waiting" }, tasks.length - sent);
  }
}

function stopsOf({ stopsContainers }: EvictionTask): Pick<EvictionProgress, "stopsContainers"> {
  return stopsContainers ? { stopsContainers } : {};
}
