import { releaseTimeMs } from "@nodekeeper/api/decide";
import type { WorkQueue } from "@nodekeeper/core/lib";
import type { EvictionContext } from "../context.ts";
import type { NodePods } from "../parts.ts";
import type { EvictionJournal } from "./eviction-journal.ts";
import type { EvictionSender } from "./eviction-sender.ts";
import type { EvictionTask } from "./eviction-task.ts";
import type { EvictionTasks } from "./eviction-tasks.ts";
import type { FreshPod } from "./fresh-pod.ts";

export interface PodReleaseOptions {
  context: Pick<EvictionContext, "policy" | "clock">;
  tasks: EvictionTasks;
  journal: Pick<EvictionJournal, "step">;
  sender: Pick<EvictionSender, "read">;
  pods: NodePods;
  /** The evictor's queue. Keys are UIDs. */
  queue: Pick<WorkQueue, "addAfter" | "cancel">;
}

// Delay before a pod past its deadline is read again after a failed read, or if the watch does not have it, milliseconds.
const REREAD_MS = 10_000;
// Delay before a terminating pod that the watch does not have is read again, milliseconds.
const UNWATCHED_REREAD_MS = 1_000;

/**
 * Follows pods from the acceptance of their eviction, or from when they were found terminating, to their end.
 *
 * 1. A pod counts as deleted if the watch reports its deletion or the API server returns 404 for it. No other error
 *    counts.
 * 2. The deadline is the effective grace period plus the release margin. If the eviction was accepted and the pod is
 *    still terminating at the deadline, it is reported as overdue. The pod is followed until it is deleted.
 */
export class PodRelease {
  readonly #options: PodReleaseOptions;

  constructor(options: PodReleaseOptions) {
    this.#options = options;
  }

  /** Starts the deadline. */
  start(task: EvictionTask, graceSeconds: number): void {
    const now = this.#options.context.clock.monotonic();
    task.releasingSince = now;
    task.deadline = this.#deadline(now, graceSeconds);
  }

  /** Awaits the deletion of the pod up to the deadline. */
  await({ pod: { uid }, deadline = 0 }: EvictionTask): void {
    const { context, pods, queue } = this.#options;
    queue.cancel(uid);
    queue.addAfter(uid, deadline - context.clock.monotonic());
    // The watch reports no deletions before its first list, and it may have reported this one before the eviction was
    // accepted.
    if (!pods.isSynced || pods.get(uid) === undefined) queue.addAfter(uid, UNWATCHED_REREAD_MS);
  }

  /** Takes a deletion reported by the watch. While the response to a request is awaited, the task does not end. */
  podDeleted(uid: string): void {
    const { tasks } = this.#options;
    const task = tasks.get(uid);
    if (task === undefined) return;
    if (task.requests === "underWay") task.seenEnd = "pod deleted";
    else tasks.endWithPod(task, "pod deleted");
  }

  /**
   * Reads the pod, and updates or ends the task by its state. Called at the deadline, if the watch does not have the
   * pod, and first for an eviction that was decided before a restart of the agent.
   */
  async check(task: EvictionTask, signal: AbortSignal): Promise<void> {
    const { context, tasks, journal, sender, queue } = this.#options;
    const { uid } = task.pod;
    const fresh = await sender.read(task, signal);
    if (!tasks.isUnderWay(task)) return;
    switch (fresh.kind) {
      case "deleted":
      case "replaced":
      case "finished":
        tasks.endWithPod(task, fresh.seen);
        break;
      case "unknown":
        journal.step(task, `the pod can't be read: ${fresh.message}`);
        queue.addAfter(uid, REREAD_MS);
        break;
      case "terminating":
        this.#terminates(task, fresh);
        break;
      case "present":
      case "protected": {
        const left = (task.deadline ?? 0) - context.clock.monotonic();
        if (task.stopsContainers) this.#checkStopped(task);
        else if (task.isFollowed || left <= 0) this.#notTerminating(task);
        else queue.addAfter(uid, left);
      }
    }
  }

  // The deadline follows the grace period with which the pod terminates.
  #terminates(task: EvictionTask, { pod, ending }: Extract<FreshPod, { kind: "terminating" }>): void {
    const { context, tasks, pods, queue } = this.#options;
    const { uid } = task.pod;
    const now = context.clock.monotonic();
    task.releasingSince ??= now;
    const ownSeconds = task.gracePeriodSeconds ?? pod.gracePeriodSeconds;
    const deadline = Math.max(
      task.deadline ?? this.#deadline(task.releasingSince, ownSeconds),
      this.#deadline(task.releasingSince, ending.deletion?.gracePeriodSeconds ?? 0),
    );
    const isNew = task.phase === "waiting" || deadline !== task.deadline;
    task.deadline = deadline;
    if (isNew) tasks.awaited(task, "followed");
    if (now < deadline) {
      this.await(task);
      return;
    }
    if (task.requests === "accepted") tasks.overdue(task);
    // The watch reports no deletion of a pod that it has never had.
    if (!pods.isSynced || pods.get(uid) === undefined) queue.addAfter(uid, REREAD_MS);
  }

  #notTerminating(task: EvictionTask): void {
    const message =
      task.requests === "accepted"
        ? "the eviction was accepted, but the pod is not terminating"
        : "the pod is not terminating";
    this.#options.tasks.end(task, { result: "failed", message });
  }

  // After a restart of the agent, the containers that run at the deadline show whether they were stopped.
  #checkStopped(task: EvictionTask): void {
    const { context, tasks } = this.#options;
    const { deadline = 0 } = task;
    const running = tasks.running(task);
    if (context.clock.monotonic() < deadline) {
      if (task.phase === "waiting") tasks.awaited(task, "followed");
      this.await(task);
    } else if (running?.length === 0) {
      tasks.endWithPod(task, "its containers have exited");
    } else {
      const message = `containers were not stopped, or were restarted: ${running?.join(", ") || "unknown"}`;
      tasks.end(task, { result: "failed", message });
    }
  }

  #deadline(since: number, graceSeconds: number): number {
    return since + releaseTimeMs(graceSeconds, this.#options.context.policy());
  }
}
