import {
  type EvictionOutcome,
  type PendingEviction,
  releaseTimeMs,
  type Victim,
  type Withdrawal,
} from "@nodekeeper/api/decide";
import { EvictionNotAccepted } from "@nodekeeper/api/errors";
import {
  delayAfter,
  type HealthCheck,
  type HealthResult,
  type Runnable,
  retryPolicies,
  type Timer,
  WorkQueue,
} from "@nodekeeper/core/lib";
import type { EvictionContext } from "../context.ts";
import type { EvictionLedger } from "../ledger.ts";
import type { NodePods } from "../parts.ts";
import type { EvictedContainers } from "./evicted-containers.ts";
import { type EvictionEnd, EvictionJournal, type EvictionJournalOptions } from "./eviction-journal.ts";
import type { EvictionSender, NextStep } from "./eviction-sender.ts";
import { type EvictionTask, followedTask, taskOf } from "./eviction-task.ts";
import type { FreshPod } from "./fresh-pod.ts";
import { podEndOf } from "./pod-end.ts";

export interface PodEvictorOptions
  extends EvictionJournalOptions,
    Pick<EvictionContext, "policy" | "queueMetrics"> {
  ledger: Pick<EvictionLedger, "progress" | "outcome" | "step">;
  sender: EvictionSender;
  pods: NodePods;
  /** Undefined if no container runtime is configured. */
  containers: Pick<EvictedContainers, keyof EvictedContainers> | undefined;
}

const WORKERS = 8;
// Bounds memory if the burst is unlimited.
const MOST_UNDER_WAY = 1_000;
const MOST_TRIES = 8;
// After this number of refusals the eviction fails, so that another pod is tried within three rounds of the default
// period.
const MOST_REFUSALS = 3;
// With Retry-After, for example for a PodDisruptionBudget that is not observed yet: one retry.
const MOST_REFUSALS_WITH_WAIT = 2;
// Delay before a pod past its deadline is read again after a failed read, milliseconds.
const REREAD_MS = 10_000;
// Delay before a terminating pod is read again while the pods of the node are not listed yet, milliseconds.
const UNSYNCED_REREAD_MS = 1_000;
// If an eviction is not accepted for longer than this, the readiness check fails, milliseconds.
const SLOW_MS = 60_000;

/**
 * Sends evictions and follows each to its end. Each has one final outcome. No other part evicts pods.
 *
 * 1. The pod is read again before an eviction is sent. If the pod has ended, the eviction ends; a terminating pod is
 *    only followed; a protected pod is not evicted.
 * 2. A pod counts as deleted if the watch reports its deletion or the API server returns 404 for it. No other error
 *    counts.
 * 3. A pod counts as evicted only if a request was accepted: see `podEndOf`. While a response is awaited, the end of
 *    the pod does not end the eviction.
 * 4. The deadline of an eviction starts with its acceptance. A pod that is still terminating after its effective grace
 *    period and the release margin is reported as overdue, and is followed further.
 * 5. An eviction that was decided before a restart of the agent is followed and never sent again.
 */
export class PodEvictor implements Runnable {
  readonly name = "evictor";
  readonly #options: PodEvictorOptions;
  readonly #queue: WorkQueue;
  readonly #journal: EvictionJournal;
  readonly #tasks = new Map<string, EvictionTask>();
  readonly #timers = new Map<string, Timer>();
  readonly #stops = new Set<Promise<void>>();

  constructor(options: PodEvictorOptions) {
    this.#options = options;
    const { clock, log, queueMetrics: metrics } = options;
    this.#queue = new WorkQueue({ name: "evictor", clock, log, maxKeys: 2 * MOST_UNDER_WAY, metrics });
    this.#journal = new EvictionJournal(options);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { pods, containers } = this.#options;
    const stopListening = pods.onDeleted((uid) => this.#podDeleted(uid));
    try {
      await Promise.all([
        this.#queue.run(signal, WORKERS, (uid) => this.#work(uid, signal)),
        containers?.run(signal),
      ]);
    } finally {
      stopListening();
      for (const timer of this.#timers.values()) timer.cancel();
      await Promise.allSettled(this.#stops);
    }
  }

  /** Starts the evictions of a decision's victims. Evictions in progress continue unchanged. */
  start(victims: readonly Victim[]): void {
    const now = this.#options.clock.monotonic();
    for (const victim of victims) this.#add(taskOf(victim, now), "eviction started");
  }

  /**
   * Follows evictions that were accepted, or whose pods were terminating, before a restart of the agent. Sends none of
   * them again; each gets a final outcome.
   */
  resume(pending: readonly PendingEviction[]): void {
    const { clock } = this.#options;
    const by = clock.monotonic() - clock.now();
    for (const pod of pending)
      this.#add(
        followedTask(pod, (wall) => wall + by),
        "followed after a restart of the agent",
      );
  }

  /** Cancels evictions that have not been accepted. Accepted ones continue. */
  withdraw(withdrawals: readonly Withdrawal[]): void {
    for (const { uid, reason } of withdrawals) {
      const task = this.#tasks.get(uid);
      // A followed eviction is not sent again, so there is nothing to withdraw.
      const isSettled = task?.isFollowed || task?.phase === "sent" || task?.withdrawn !== undefined;
      if (task === undefined || isSettled) continue;
      task.withdrawn = reason;
      this.#journal.step(task, `withdrawn: ${reason}`);
      this.#queue.add(uid);
    }
  }

  /** Counts, logs and marks the outcome of an eviction that a restart interrupted and that is not followed. */
  reportInterrupted(eviction: PendingEviction, outcome: EvictionOutcome): void {
    this.#journal.interrupted(eviction, outcome);
  }

  /** The number of pods evicted since the agent's start: accepted, and then deleted or stopped. */
  get evicted(): number {
    return this.#journal.evicted;
  }

  /**
   * The missing right because of which no pod can be evicted, as of the last attempt; undefined if no right is missing,
   * or ten minutes after that attempt.
   */
  get forbidden(): string | undefined {
    return this.#options.sender.health.missingRight;
  }

  /**
   * Fails if the agent lacks the right to evict, if the last three evictions failed without an acceptance, or if an
   * eviction has not been accepted for more than a minute.
   */
  healthCheck(): HealthCheck {
    return { name: "EvictionKillerReady", kind: "ready", check: () => this.#check() };
  }

  #add(task: EvictionTask, message: string): void {
    const { uid } = task.pod;
    if (this.#tasks.has(uid)) return;
    this.#tasks.set(uid, task);
    if (this.#tasks.size > MOST_UNDER_WAY) {
      this.#end(task, { result: "failed", message: `${MOST_UNDER_WAY} evictions are already in progress` });
      return;
    }
    this.#options.containers?.follow(uid);
    this.#gauge();
    this.#journal.step(task, message);
    this.#queue.add(uid);
  }

  async #work(uid: string, signal: AbortSignal): Promise<void> {
    const { sender } = this.#options;
    const task = this.#tasks.get(uid);
    if (task === undefined) return;
    if (task.phase === "sent" || task.isFollowed) {
      await this.#checkSent(task, signal);
    } else if (task.withdrawn !== undefined && task.requests === "none") {
      this.#end(task, { result: "withdrawn", message: task.withdrawn });
    } else {
      this.#advance(task, await sender.send(task, () => this.#sending(task), signal));
    }
  }

  // Limits count only recorded evictions: an eviction that can't be recorded is not sent.
  #sending(task: EvictionTask): boolean {
    if (task.sendingAt !== undefined) return true;
    const at = this.#options.clock.monotonic();
    if (!this.#options.ledger.progress({ uid: task.pod.uid, stage: "sending", at, deadline: null }))
      return false;
    task.sendingAt = at;
    return true;
  }

  #advance(task: EvictionTask, next: NextStep): void {
    // The pod may have been deleted while it was read, which ends the task.
    if (!this.#isUnderWay(task)) return;
    switch (next.kind) {
      case "end":
        if (next.result === "failed" && task.seenEnd !== undefined) this.#endWithPod(task, task.seenEnd);
        else this.#end(task, next);
        break;
      case "again":
        if (task.seenEnd === undefined) this.#again(task, next);
        else this.#endWithPod(task, task.seenEnd);
        break;
      case "await":
        this.#await(task, next);
        break;
    }
  }

  // The wait occupies no worker. An eviction fails now if its retry would come after its deadline.
  #again(task: EvictionTask, next: Extract<NextStep, { kind: "again" }>): void {
    const { clock, log, policy } = this.#options;
    const { message, retryAfterMs, graceSeconds, isForbidden } = next;
    task.phase = "waiting";
    if (next.isRefused) task.refusals++;
    const delay = Math.max(retryAfterMs ?? 0, delayAfter(task.tries++, retryPolicies.eviction));
    // The grace period is unknown until the pod has been read.
    const { longestReleaseMs } = policy();
    task.deadline ??=
      clock.monotonic() + Math.min(releaseTimeMs(graceSeconds ?? 0, policy()), longestReleaseMs);
    const mostRefusals = retryAfterMs === undefined ? MOST_REFUSALS : MOST_REFUSALS_WITH_WAIT;
    const isOver = task.tries >= MOST_TRIES || task.refusals >= mostRefusals;
    if (isOver || clock.monotonic() + delay >= task.deadline) {
      const end = { message: `gave up after ${attempts(task.tries)}: ${message}`, isForbidden };
      this.#end(task, { result: "failed", ...end });
      return;
    }
    this.#journal.step(task, `${message}; retry in ${delay / 1000} s`);
    const { pod, tries } = task;
    log[tries === 1 ? "warn" : "debug"](
      { errorId: EvictionNotAccepted.id, pod, tries, message, retryInMs: delay },
      "eviction is retried",
    );
    this.#queue.addAfter(task.pod.uid, delay);
  }

  #await(task: EvictionTask, next: Extract<NextStep, { kind: "await" }>): void {
    const { clock, sender } = this.#options;
    const now = clock.monotonic();
    task.releasingSince = now;
    task.deadline = this.#deadline(now, next.graceSeconds);
    this.#journal.step(task, next.message);
    if (task.requests === "accepted") {
      sender.health.accepted();
      this.#journal.accepted(task);
    }
    const isAccepted = task.requests === "accepted" || next.ended !== undefined;
    this.#awaited(task, isAccepted ? "accepted" : "followed");
    if (next.ended) this.#awaitStop(task, next.ended, next.graceSeconds);
    else if (task.seenEnd !== undefined) this.#endWithPod(task, task.seenEnd);
    else this.#awaitDeletion(task);
  }

  #awaited(task: EvictionTask, stage: "accepted" | "followed"): void {
    const { uid } = task.pod;
    const { deadline = null, stopsContainers } = task;
    task.phase = "sent";
    this.#gauge();
    const at = this.#options.clock.monotonic();
    this.#options.ledger.progress({
      uid,
      stage,
      at,
      deadline,
      ...(stopsContainers ? { stopsContainers } : {}),
    });
  }

  #awaitDeletion({ pod: { uid }, deadline = 0 }: EvictionTask): void {
    const { clock, pods } = this.#options;
    const timer = clock.after(Math.max(deadline - clock.monotonic(), 0), () => this.#queue.add(uid));
    this.#timers.get(uid)?.cancel();
    this.#timers.set(uid, timer);
    // The watch does not report a pod that is deleted before the first list.
    if (!pods.isSynced) this.#queue.addAfter(uid, UNSYNCED_REREAD_MS);
    // The watch may have reported the deletion before the eviction was accepted.
    else if (pods.get(uid) === undefined) this.#queue.add(uid);
  }

  // StopContainer takes up to the grace period and must not occupy a worker. The killer has its own deadline.
  #awaitStop(
    task: EvictionTask,
    ended: Extract<NextStep, { kind: "await" }>["ended"] & object,
    graceSeconds: number,
  ): void {
    const { sender } = this.#options;
    const following = ended
      .then((end) => {
        const next = sender.ended(task, end, graceSeconds);
        if (task.requests === "accepted") {
          sender.health.accepted();
          this.#journal.accepted(task);
        }
        this.#advance(task, next);
      })
      // A killer throws only the signal's reason.
      .catch(() => {})
      .finally(() => this.#stops.delete(following));
    this.#stops.add(following);
  }

  // Runs after the deadline, if the watch does not have the pod, and first for a followed eviction.
  async #checkSent(task: EvictionTask, signal: AbortSignal): Promise<void> {
    const { clock, sender } = this.#options;
    const fresh = await sender.read(task, signal);
    if (!this.#isUnderWay(task)) return;
    switch (fresh.kind) {
      case "deleted":
      case "replaced":
      case "finished":
        this.#endWithPod(task, fresh.seen);
        break;
      case "unknown":
        this.#journal.step(task, `the pod can't be read: ${fresh.message}`);
        this.#queue.addAfter(task.pod.uid, REREAD_MS);
        break;
      case "terminating":
        this.#terminates(task, fresh);
        break;
      case "present":
      case "protected":
        if (task.stopsContainers) this.#checkStopped(task);
        else if (task.isFollowed || clock.monotonic() >= (task.deadline ?? 0)) this.#notTerminating(task);
    }
  }

  // The deadline follows the grace period with which the pod terminates.
  #terminates(task: EvictionTask, { pod, ending }: Extract<FreshPod, { kind: "terminating" }>): void {
    const { clock } = this.#options;
    const now = clock.monotonic();
    task.releasingSince ??= now;
    const ownSeconds = task.gracePeriodSeconds ?? pod.gracePeriodSeconds;
    const deadline = Math.max(
      task.deadline ?? this.#deadline(task.releasingSince, ownSeconds),
      this.#deadline(task.releasingSince, ending.deletion?.gracePeriodSeconds ?? 0),
    );
    const isNew = task.phase === "waiting" || deadline !== task.deadline;
    task.deadline = deadline;
    if (isNew) this.#awaited(task, "followed");
    if (now < deadline) this.#awaitDeletion(task);
    else if (task.requests === "accepted") this.#overdue(task);
  }

  #notTerminating(task: EvictionTask): void {
    const message =
      task.requests === "accepted"
        ? "the eviction was accepted, but the pod is not terminating"
        : "the pod is not terminating";
    this.#end(task, { result: "failed", message });
  }

  // After a restart of the agent, the containers that run at the deadline show whether they were stopped.
  #checkStopped(task: EvictionTask): void {
    const { clock, containers } = this.#options;
    const { deadline = 0 } = task;
    const running = containers?.running(task.pod.uid) ?? [];
    if (clock.monotonic() < deadline) {
      if (task.phase === "waiting") this.#awaited(task, "followed");
      this.#awaitDeletion(task);
    } else if (containers && running.length === 0) {
      this.#endWithPod(task, "its containers have exited");
    } else {
      const message = `containers were not stopped, or were restarted: ${running.join(", ") || "unknown"}`;
      this.#end(task, { result: "failed", message });
    }
  }

  // Reported once. The pod is followed until it is deleted.
  #overdue(task: EvictionTask): void {
    if (task.isOverdue) return;
    task.isOverdue = true;
    const running = this.#options.containers?.running(task.pod.uid) ?? [];
    const left = running.length > 0 ? `; still running: ${running.join(", ")}` : "";
    this.#journal.overdue(
      task,
      `the pod is still terminating after its grace period and the release margin${left}`,
    );
  }

  #podDeleted(uid: string): void {
    const task = this.#tasks.get(uid);
    if (task === undefined) return;
    if (task.requests === "underWay") task.seenEnd = "pod deleted";
    else this.#endWithPod(task, "pod deleted");
  }

  #endWithPod(task: EvictionTask, seen: string): void {
    this.#end(task, podEndOf(task, seen));
  }

  #end(task: EvictionTask, end: EvictionEnd): void {
    const { containers, sender } = this.#options;
    const { pod } = task;
    this.#tasks.delete(pod.uid);
    this.#timers.get(pod.uid)?.cancel();
    this.#timers.delete(pod.uid);
    const wasTried = task.sendingAt !== undefined || task.tries > 0;
    if (end.result === "failed" && wasTried && task.requests !== "accepted")
      sender.health.failed(end.message);
    this.#journal.ended(task, end);
    this.#gauge();
    if (end.result === "terminated") containers?.podDeleted(pod);
    else containers?.forget(pod.uid);
  }

  #isUnderWay(task: EvictionTask): boolean {
    return this.#tasks.get(task.pod.uid) === task;
  }

  #deadline(since: number, graceSeconds: number): number {
    return since + releaseTimeMs(graceSeconds, this.#options.policy());
  }

  #gauge(): void {
    const { underWay } = this.#options.metrics;
    const tasks = [...this.#tasks.values()];
    const sent = tasks.filter(({ phase }) => phase === "sent").length;
    underWay.set({ phase: "sent" }, sent);
    underWay.set({ phase: "waiting" }, tasks.length - sent);
  }

  #check(): HealthResult {
    const { sender, clock } = this.#options;
    const problem = sender.health.problem();
    if (problem) return problem;
    const now = clock.monotonic();
    const slow = [...this.#tasks.values()].find(
      ({ phase, isFollowed, since }) => phase === "waiting" && !isFollowed && now - since > SLOW_MS,
    );
    if (slow === undefined) return { ok: true, message: `${this.#tasks.size} evictions in progress` };
    const seconds = Math.round((now - slow.since) / 1000);
    return {
      ok: false,
      message: `the eviction of ${slow.pod.namespace}/${slow.pod.name} has not been accepted for ${seconds} s: ${slow.lastStep}`,
      errorId: EvictionNotAccepted.id,
    };
  }
}

function attempts(count: number): string {
  return count === 1 ? "1 attempt" : `${count} attempts`;
}
