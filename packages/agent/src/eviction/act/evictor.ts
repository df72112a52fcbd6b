import {
  type EvictionOutcome,
  type PendingEviction,
  releaseTimeMs,
  type Victim,
  type Withdrawal,
} from "@nodekeeper/api/decide";
import { EvictionNotAccepted } from "@nodekeeper/api/errors";
import { counted } from "@nodekeeper/api/wording";
import {
  delayAfter,
  type HealthCheck,
  type HealthResult,
  type Runnable,
  retryPolicies,
  WorkQueue,
} from "@nodekeeper/core/lib";
import type { EvictionContext } from "../context.ts";
import type { EvictionLedger } from "../ledger.ts";
import type { NodePods } from "../parts.ts";
import type { EvictedContainers } from "./evicted-containers.ts";
import { EvictionJournal } from "./eviction-journal.ts";
import type { EvictionSender, NextStep } from "./eviction-sender.ts";
import { type EvictionTask, followedTask, taskOf } from "./eviction-task.ts";
import { EvictionTasks, MOST_UNDER_WAY } from "./eviction-tasks.ts";
import type { KillEnd } from "./killer.ts";
import { PodRelease } from "./pod-release.ts";

export interface PodEvictorOptions {
  context: Pick<
    EvictionContext,
    "policy" | "events" | "marks" | "clock" | "log" | "metrics" | "queueMetrics"
  >;
  ledger: Pick<EvictionLedger, "progress" | "outcome" | "step">;
  sender: EvictionSender;
  pods: NodePods;
  /** Undefined if no container runtime is configured. */
  containers: Pick<EvictedContainers, keyof EvictedContainers> | undefined;
}

const WORKERS = 8;
const MOST_TRIES = 8;
// After this number of refusals the eviction fails, so that another pod is tried within three rounds of the default
// period.
const MOST_REFUSALS = 3;
// With Retry-After, for example for a PodDisruptionBudget that is not observed yet: one retry.
const MOST_REFUSALS_WITH_WAIT = 2;
// If an eviction is not accepted for longer than this, the readiness check fails, milliseconds.
const SLOW_MS = 60_000;

/**
 * Sends evictions, and retries evictions that are not accepted. No other part evicts pods. `PodRelease` follows each
 * eviction to its end, and `EvictionTasks` records it. Each eviction has one final outcome.
 *
 * 1. The pod is read again before an eviction is sent. If the pod has ended, the eviction ends; a terminating pod is
 *    only followed; a protected pod is not evicted. A deleted pod is also removed from the pods of the node. The
 *    resourceVersion that was read is a precondition of the request to the API server: if the pod has changed, it is read
 *    again.
 * 2. A pod counts as evicted only if a request was accepted: see `podEndOf`. While a response is awaited, the end of
 *    the pod does not end the eviction.
 * 3. An eviction that was decided before a restart of the agent is followed and never sent again.
 */
export class PodEvictor implements Runnable {
  readonly name = "evictor";
  readonly #options: PodEvictorOptions;
  readonly #queue: WorkQueue;
  readonly #journal: EvictionJournal;
  readonly #tasks: EvictionTasks;
  readonly #release: PodRelease;
  readonly #stops = new Set<Promise<void>>();

  constructor(options: PodEvictorOptions) {
    this.#options = options;
    const { context, ledger, sender, pods, containers } = options;
    const { clock, log, queueMetrics: metrics } = context;
    const queue = new WorkQueue({ name: "evictor", clock, log, maxKeys: 2 * MOST_UNDER_WAY, metrics });
    const journal = new EvictionJournal({ ...context, ledger });
    const tasks = new EvictionTasks({ context, ledger, journal, containers, health: sender.health, queue });
    this.#queue = queue;
    this.#journal = journal;
    this.#tasks = tasks;
    this.#release = new PodRelease({ context, tasks, journal, sender, pods, queue });
  }

  async run(signal: AbortSignal): Promise<void> {
    const { pods, containers } = this.#options;
    const stopListening = pods.onDeleted((uid) => this.#release.podDeleted(uid));
    try {
      await Promise.all([
        this.#queue.run(signal, WORKERS, (uid) => this.#work(uid, signal)),
        containers?.run(signal),
      ]);
    } finally {
      stopListening();
      await Promise.allSettled(this.#stops);
    }
  }

  /** Starts the evictions of a decision's victims. Evictions in progress continue unchanged. */
  start(victims: readonly Victim[]): void {
    const now = this.#options.context.clock.monotonic();
    for (const victim of victims) this.#tasks.add(taskOf(victim, now), "eviction started");
  }

  /**
   * Follows evictions that were accepted, or whose pods were terminating, before a restart of the agent. Sends none of
   * them again; each gets a final outcome.
   */
  resume(pending: readonly PendingEviction[]): void {
    const { clock } = this.#options.context;
    const by = clock.monotonic() - clock.now();
    for (const pod of pending)
      this.#tasks.add(
        followedTask(pod, (wall) => wall + by),
        "followed after a restart of the agent",
      );
  }

  /**
   * Cancels evictions that have not been accepted. Accepted ones continue. A call to stop containers continues too, but
   * is not repeated if it fails.
   */
  withdraw(withdrawals: readonly Withdrawal[]): void {
    for (const { uid, reason } of withdrawals) {
      const task = this.#tasks.get(uid);
      // A followed eviction is not sent again, so there is nothing to withdraw.
      if (task === undefined || task.isFollowed || task.withdrawn !== undefined) continue;
      const isStopping = task.stopsContainers && task.requests === "underWay";
      if (task.phase === "sent" && !isStopping) continue;
      task.withdrawn = reason;
      this.#journal.step(task, `withdrawn: ${reason}`);
      if (task.phase === "waiting") this.#queue.add(uid);
    }
  }

  /** Counts, logs and marks the outcome of an eviction that a restart interrupted and that is not followed. */
  reportInterrupted(eviction: PendingEviction, outcome: EvictionOutcome): void {
    this.#journal.interrupted(eviction, outcome);
  }

  /** Counts and marks the outcome of an eviction that ended before a restart and that no round has recorded. */
  reportEnded(outcome: EvictionOutcome): void {
    this.#journal.endedBefore(outcome);
  }

  /** The number of pods evicted since the agent's start: accepted, and then deleted or stopped. */
  get evicted(): number {
    return this.#journal.evicted;
  }

  /**
   * Why the agent can't evict any pod, such as a missing right, as of the last attempt. Undefined if it can, and ten
   * minutes after that attempt.
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

  async #work(uid: string, signal: AbortSignal): Promise<void> {
    const { sender, pods } = this.#options;
    const task = this.#tasks.get(uid);
    if (task === undefined) return;
    if (task.phase === "sent" || task.isFollowed) {
      await this.#release.check(task, signal);
    } else if (task.withdrawn !== undefined && task.requests === "none") {
      this.#tasks.end(task, { result: "withdrawn", message: task.withdrawn });
    } else {
      // Limits count only recorded evictions: an eviction that can't be recorded is not sent.
      const onSending = () => this.#tasks.isUnderWay(task) && this.#tasks.sending(task);
      this.#advance(task, await sender.send(task, onSending, signal));
    }
    if (task.isGone) pods.forget(uid);
  }

  #advance(task: EvictionTask, next: NextStep): void {
    const tasks = this.#tasks;
    // The pod may have been deleted while it was read, which ends the task.
    if (!tasks.isUnderWay(task)) return;
    switch (next.kind) {
      case "end":
        if (next.result === "failed" && task.seenEnd !== undefined) tasks.endWithPod(task, task.seenEnd);
        else tasks.end(task, next);
        break;
      case "changed":
        this.#journal.step(task, next.message);
        if (task.seenEnd === undefined) this.#queue.add(task.pod.uid);
        else tasks.endWithPod(task, task.seenEnd);
        break;
      case "again":
        if (task.seenEnd === undefined) this.#again(task, next);
        else tasks.endWithPod(task, task.seenEnd);
        break;
      case "await":
        this.#await(task, next);
        break;
    }
  }

  // The wait occupies no worker. An eviction fails now if its retry would come after its deadline.
  #again(task: EvictionTask, next: Extract<NextStep, { kind: "again" }>): void {
    const { clock, log, policy } = this.#options.context;
    const { message, retryAfterMs, graceSeconds, isForbidden } = next;
    task.phase = "waiting";
    if (task.withdrawn !== undefined) {
      this.#journal.step(task, message);
      this.#tasks.end(task, { result: "withdrawn", message: task.withdrawn });
      return;
    }
    if (next.isRefused) task.refusals++;
    const delay = Math.max(retryAfterMs ?? 0, delayAfter(task.tries++, retryPolicies.eviction));
    // The grace period is unknown until the pod has been read.
    const { longestReleaseMs } = policy();
    task.deadline ??=
      clock.monotonic() + Math.min(releaseTimeMs(graceSeconds ?? 0, policy()), longestReleaseMs);
    const mostRefusals = retryAfterMs === undefined ? MOST_REFUSALS : MOST_REFUSALS_WITH_WAIT;
    const isOver = task.tries >= MOST_TRIES || task.refusals >= mostRefusals;
    if (isOver || clock.monotonic() + delay >= task.deadline) {
      const end = { message: `no success after ${attempts(task.tries)}: ${message}`, isForbidden };
      this.#tasks.end(task, { result: "failed", ...end });
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
    const tasks = this.#tasks;
    this.#release.start(task, next.graceSeconds);
    this.#journal.step(task, next.message);
    if (task.requests === "accepted") tasks.accepted(task);
    const isAccepted = task.requests === "accepted" || next.ended !== undefined;
    tasks.awaited(task, isAccepted ? "accepted" : "followed");
    if (next.ended) this.#awaitStop(task, next.ended, next.graceSeconds);
    else if (task.seenEnd !== undefined) tasks.endWithPod(task, task.seenEnd);
    else this.#release.await(task);
  }

  // StopContainer takes up to the grace period and must not occupy a worker. The killer has its own deadline.
  #awaitStop(task: EvictionTask, ended: Promise<KillEnd>, graceSeconds: number): void {
    const following = ended
      .then((end) => {
        const next = this.#options.sender.ended(task, end, graceSeconds);
        if (task.requests === "accepted") this.#tasks.accepted(task);
        this.#advance(task, next);
      })
      // A killer throws only the signal's reason.
      .catch(() => {})
      .finally(() => this.#stops.delete(following));
    this.#stops.add(following);
  }

  #check(): HealthResult {
    const { sender, context } = this.#options;
    const problem = sender.health.problem();
    if (problem) return problem;
    const slow = this.#tasks.oldestWaiting();
    const waitedMs = slow === undefined ? 0 : context.clock.monotonic() - slow.since;
    if (slow === undefined || waitedMs <= SLOW_MS)
      return { ok: true, message: `${counted(this.#tasks.size, "eviction")} in progress` };
    const { pod, lastStep } = slow;
    return {
      ok: false,
      message: `the eviction of ${pod.namespace}/${pod.name} has not been accepted for ${Math.round(waitedMs / 1000)} s: ${lastStep}`,
      errorId: EvictionNotAccepted.id,
    };
  }
}

function attempts(count: number): string {
  return counted(count, "attempt");
}
