import type { EventRecorder } from "@nodekeeper/core/kube";
import {
  type Clock,
  delayAfter,
  type HealthCheck,
  type HealthResult,
  type Logger,
  type Runnable,
  retryPolicies,
  type Timer,
  WorkQueue,
  type WorkQueueMetrics,
} from "@nodekeeper/core/lib";
import type { Victim, Withdrawal } from "../decide/decision.ts";
import type { BudgetStatus, EvictionOutcome } from "../decide/outcome.ts";
import type { PodReference } from "../decide/pods.ts";
import type { EvictionPolicy } from "../decide/policy.ts";
import { releaseTimeMs } from "../decide/release.ts";
import type { Acceptance, PendingEviction } from "../decide/state.ts";
import type { EvictionStep, Evictor, NodePods } from "../parts.ts";
import type { EvictedContainers } from "./evicted-containers.ts";
import type { EvictionSender, NextStep } from "./eviction-sender.ts";
import { type EvictionTask, taskOf } from "./eviction-task.ts";
import type { EvictorMetrics } from "./evictor-metrics.ts";
import { aboutPod } from "./pod-resource.ts";

export interface PodEvictorOptions {
  sender: EvictionSender;
  pods: NodePods;
  /** Undefined where no container runtime is configured. */
  containers: Pick<EvictedContainers, keyof EvictedContainers> | undefined;
  policy: () => Pick<EvictionPolicy, "releaseMarginMs" | "longestReleaseMs">;
  events: Pick<EventRecorder, "record">;
  /** Called when an eviction has ended, or is overdue. */
  onEnded: (pod: PodReference, plugin: string, text: string) => void;
  clock: Clock;
  log: Logger;
  metrics: EvictorMetrics;
  queueMetrics: WorkQueueMetrics;
}

const WORKERS = 8;
// Bounds memory where the burst is unlimited.
const MOST_UNDER_WAY = 1_000;
const MOST_TRIES = 8;
// After so many refusals of one pod another pod is tried: within three rounds of the default period.
const MOST_REFUSALS = 3;
// With Retry-After, as for a PodDisruptionBudget that is not observed yet: one retry.
const MOST_REFUSALS_WITH_WAIT = 2;
// Delay until a pod past its deadline that could not be read is read again, milliseconds.
const REREAD_MS = 10_000;
// An eviction that has not been accepted for longer fails the readiness check, milliseconds.
const SLOW_MS = 60_000;

/**
 * Sends evictions and follows each to its end.
 *
 * 1. The pod is read again before an eviction is sent. A deleted pod ends its eviction, a terminating pod is only
 *    followed, and a protected pod is not evicted.
 * 2. A pod counts as deleted when the watch reports it or the API server returns 404 for it. No other error counts.
 * 3. The deadline of an eviction starts with its acceptance. A pod that is still terminating at the deadline is reported
 *    as overdue, and is still followed.
 * 4. An eviction that was sent before a restart of the agent is followed and never sent again.
 */
export class PodEvictor implements Evictor, Runnable {
  readonly name = "evictor";
  readonly #options: PodEvictorOptions;
  readonly #queue: WorkQueue;
  readonly #tasks = new Map<string, EvictionTask>();
  readonly #timers = new Map<string, Timer>();
  readonly #stops = new Set<Promise<void>>();
  #outcomes: EvictionOutcome[] = [];
  #evicted = 0;
  #steps: EvictionStep[] = [];
  readonly #listeners = new Set<(acceptance: Acceptance) => void>();

  constructor(options: PodEvictorOptions) {
    this.#options = options;
    const { clock, log, queueMetrics: metrics } = options;
    this.#queue = new WorkQueue({ name: "evictor", clock, log, maxKeys: 2 * MOST_UNDER_WAY, metrics });
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

  start(victims: readonly Victim[]): void {
    const now = this.#options.clock.monotonic();
    for (const victim of victims) this.#add(taskOf(victim, now, false), "eviction started");
  }

  resume(pending: readonly PendingEviction[]): void {
    const { clock } = this.#options;
    const [now, monotonic] = [clock.now(), clock.monotonic()];
    for (const pod of pending) {
      const task = taskOf(pod, monotonic - Math.max(now - pod.since, 0), true);
      task.maybeSent = true;
      task.deadline = monotonic + (pod.deadline ?? now) - now;
      this.#add(task, "followed after a restart of the agent");
    }
  }

  onAccepted(listener: (acceptance: Acceptance) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  withdraw(withdrawals: readonly Withdrawal[]): void {
    for (const { uid, reason } of withdrawals) {
      const task = this.#tasks.get(uid);
      if (task === undefined || task.phase === "sent" || task.withdrawn !== undefined) continue;
      task.withdrawn = reason;
      this.#step(task, `withdrawn: ${reason}`);
      this.#queue.add(uid);
    }
  }

  takeOutcomes(): EvictionOutcome[] {
    const outcomes = this.#outcomes;
    this.#outcomes = [];
    return outcomes;
  }

  takeSteps(): EvictionStep[] {
    const steps = [...this.#steps, ...(this.#options.containers?.takeSteps() ?? [])];
    this.#steps = [];
    return steps.sort((a, b) => a.at - b.at);
  }

  get forbidden(): string | undefined {
    return this.#options.sender.forbidden;
  }

  /** The number of evicted pods that were deleted since the agent's start. */
  get evicted(): number {
    return this.#evicted;
  }

  /** Fails while the agent lacks the right to evict, or an eviction has not been accepted for more than a minute. */
  healthCheck(): HealthCheck {
    return { name: "EvictionKillerReady", kind: "ready", check: () => this.#check() };
  }

  #add(task: EvictionTask, message: string): void {
    const { uid } = task.pod;
    if (this.#tasks.has(uid)) return;
    this.#tasks.set(uid, task);
    if (this.#tasks.size > MOST_UNDER_WAY) {
      this.#end(task, "failed", `${MOST_UNDER_WAY} evictions are already in progress`);
      return;
    }
    this.#options.containers?.follow(uid);
    this.#gauge();
    this.#step(task, message);
    this.#queue.add(uid);
  }

  async #work(uid: string, signal: AbortSignal): Promise<void> {
    const { sender } = this.#options;
    const task = this.#tasks.get(uid);
    if (task === undefined) return;
    if (task.phase === "sent" || task.isFollowed) {
      await this.#checkSent(task, signal);
    } else if (task.withdrawn !== undefined && !task.maybeSent) {
      this.#end(task, "withdrawn", task.withdrawn);
    } else {
      this.#advance(task, await sender.send(task, signal));
    }
  }

  #advance(task: EvictionTask, next: NextStep): void {
    // The pod may have been deleted during the call, which ends its task.
    if (!this.#isUnderWay(task)) return;
    switch (next.kind) {
      case "end":
        this.#end(task, next.result, next.message, next.budget);
        break;
      case "again":
        this.#again(task, next);
        break;
      case "await":
        this.#await(task, next);
        break;
    }
  }

  // The wait occupies no worker. An eviction whose retry would come after its deadline fails now.
  #again(task: EvictionTask, next: Extract<NextStep, { kind: "again" }>): void {
    const { clock, log } = this.#options;
    const { message, retryAfterMs, graceSeconds } = next;
    task.phase = "waiting";
    if (next.isRefused) task.refusals++;
    const delay = Math.max(retryAfterMs ?? 0, delayAfter(task.tries++, retryPolicies.eviction));
    // The grace period is not known before the pod was read.
    task.deadline ??= this.#deadline(graceSeconds ?? 0);
    const mostRefusals = retryAfterMs === undefined ? MOST_REFUSALS : MOST_REFUSALS_WITH_WAIT;
    const isOver = task.tries >= MOST_TRIES || task.refusals >= mostRefusals;
    if (isOver || clock.monotonic() + delay >= task.deadline) {
      this.#end(task, "failed", `gave up after ${attempts(task.tries)}: ${message}`);
      return;
    }
    this.#step(task, `${message}; retry in ${delay / 1000} s`);
    const { pod, tries } = task;
    log[tries === 1 ? "warn" : "debug"](
      { errorId: "NK1601", pod, tries, message, retryInMs: delay },
      "eviction is retried",
    );
    this.#queue.addAfter(task.pod.uid, delay);
  }

  #await(task: EvictionTask, next: Extract<NextStep, { kind: "await" }>): void {
    task.deadline = this.#deadline(next.graceSeconds);
    this.#step(task, next.message);
    this.#accepted(task, task.deadline);
    if (next.ended) this.#awaitStop(task, next.ended, next.graceSeconds);
    else this.#awaitDeletion(task, task.deadline);
  }

  #accepted(task: EvictionTask, deadline: number): void {
    task.phase = "sent";
    this.#gauge();
    const acceptance = { uid: task.pod.uid, at: this.#options.clock.monotonic(), deadline };
    for (const listener of [...this.#listeners]) listener(acceptance);
  }

  #awaitDeletion({ pod: { uid } }: EvictionTask, deadline: number): void {
    const { clock, pods } = this.#options;
    const timer = clock.after(deadline - clock.monotonic(), () => this.#queue.add(uid));
    this.#timers.get(uid)?.cancel();
    this.#timers.set(uid, timer);
    // The watch may have reported the deletion before the eviction was accepted.
    if (pods.isSynced && pods.get(uid) === undefined) this.#queue.add(uid);
  }

  // StopContainer takes up to the grace period and must not occupy a worker. The killer has its own deadline.
  #awaitStop(
    task: EvictionTask,
    ended: Extract<NextStep, { kind: "await" }>["ended"] & object,
    graceSeconds: number,
  ): void {
    const following = ended
      .then((end) => this.#advance(task, this.#options.sender.ended(task, end, graceSeconds)))
      // A killer throws only the signal's reason.
      .catch(() => {})
      .finally(() => this.#stops.delete(following));
    this.#stops.add(following);
  }

  // Runs when the deadline has passed, when the watch does not have the pod, and first for a followed eviction.
  async #checkSent(task: EvictionTask, signal: AbortSignal): Promise<void> {
    const { clock, sender } = this.#options;
    const fresh = await sender.read(task, signal);
    if (!this.#isUnderWay(task)) return;
    const deadline = task.deadline ?? 0;
    if (task.isFollowed && fresh.kind === "present" && sender.stopsContainers(fresh.pod)) {
      this.#checkStopped(task, deadline);
      return;
    }
    switch (fresh.kind) {
      case "terminated":
        this.#end(task, "terminated", fresh.message);
        break;
      case "unknown":
        this.#step(task, `the pod can't be read: ${fresh.message}`);
        this.#queue.addAfter(task.pod.uid, REREAD_MS);
        break;
      case "terminating":
        if (clock.monotonic() >= deadline) this.#overdue(task);
        else if (task.phase === "waiting") {
          this.#accepted(task, deadline);
          this.#awaitDeletion(task, deadline);
        }
        break;
      case "present":
      case "protected":
        if (task.isFollowed || clock.monotonic() >= deadline) {
          this.#end(task, "failed", "the eviction was accepted, but the pod is not terminating");
        }
    }
  }

  // After a restart of the agent, whether containers were stopped is known from those that run at the deadline.
  #checkStopped(task: EvictionTask, deadline: number): void {
    const { clock, containers } = this.#options;
    const running = containers?.running(task.pod.uid) ?? [];
    if (clock.monotonic() < deadline) {
      this.#accepted(task, deadline);
      this.#awaitDeletion(task, deadline);
    } else if (containers && running.length === 0) {
      this.#end(task, "terminated", "its containers have exited");
    } else {
      const message = `containers were not stopped, or were restarted: ${running.join(", ") || "unknown"}`;
      this.#end(task, "failed", message);
    }
  }

  // Reported once; the pod is still followed until it is deleted.
  #overdue(task: EvictionTask): void {
    if (task.isOverdue) return;
    const { log, metrics, events, containers } = this.#options;
    const { pod, plugin } = task;
    task.isOverdue = true;
    task.phase = "sent";
    const running = containers?.running(pod.uid) ?? [];
    const left = running.length > 0 ? `; still running: ${running.join(", ")}` : "";
    const message = `the pod is still terminating after its grace period and the release margin${left}`;
    this.#outcomes.push({ ...referenceTo(pod), result: "overdue", sent: !task.isForeign, message });
    metrics.ended.inc({ outcome: "overdue" });
    this.#gauge();
    this.#step(task, message);
    this.#options.onEnded(pod, plugin, `is overdue: ${message}`);
    log.warn({ errorId: "NK1610", pod, plugin, message }, "evicted pod is still terminating");
    if (task.isForeign) return;
    const text = `Evicted by ${plugin}, but ${message}`;
    events.record({ type: "Warning", reason: "EvictionOverdue", message: text, regarding: aboutPod(pod) });
  }

  #podDeleted(uid: string): void {
    const task = this.#tasks.get(uid);
    if (task) this.#end(task, "terminated", "pod deleted");
  }

  #end(task: EvictionTask, result: EvictionOutcome["result"], message: string, budget?: BudgetStatus): void {
    const { clock, log, metrics, containers, events } = this.#options;
    const { pod, plugin } = task;
    this.#tasks.delete(pod.uid);
    this.#timers.get(pod.uid)?.cancel();
    this.#timers.delete(pod.uid);
    const sent = !task.isForeign && (task.phase === "sent" || task.maybeSent || task.isSending);
    this.#outcomes.push({ ...referenceTo(pod), result, sent, message, budget: budget ?? null });
    metrics.ended.inc({ outcome: result });
    this.#gauge();
    const seconds = (clock.monotonic() - task.since) / 1000;
    if (result === "withdrawn") {
      log.info({ pod, plugin, message }, "eviction withdrawn");
    } else if (result === "terminated") {
      this.#evicted++;
      this.#step(task, message);
      metrics.duration.observe(seconds);
      this.#options.onEnded(pod, plugin, `evicted: ${message}`);
      log.info({ pod, plugin, seconds, message }, "evicted pod was deleted");
    } else {
      this.#step(task, `failed: ${message}`);
      const errorId = budget === undefined ? "NK1602" : "NK1601";
      log.warn({ errorId, pod, plugin, seconds, message }, "eviction failed");
      this.#options.onEnded(pod, plugin, `was not evicted: ${message}`);
      const text = `Eviction requested by ${plugin} failed: ${message}`;
      events.record({ type: "Warning", reason: "EvictionFailed", message: text, regarding: aboutPod(pod) });
    }
    if (result === "terminated") containers?.podDeleted(pod);
    else containers?.forget(pod.uid);
  }

  #isUnderWay(task: EvictionTask): boolean {
    return this.#tasks.get(task.pod.uid) === task;
  }

  #deadline(graceSeconds: number): number {
    const { policy, clock } = this.#options;
    return clock.monotonic() + releaseTimeMs(graceSeconds, policy());
  }

  // A step that repeats, as every ten seconds while the API server is unreachable, is recorded once.
  #step(task: EvictionTask, message: string): void {
    if (task.lastStep === message) return;
    task.lastStep = message;
    this.#steps.push({ uid: task.pod.uid, at: this.#options.clock.now(), message });
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
    if (sender.forbidden !== undefined) return { ok: false, message: sender.forbidden, errorId: "NK1602" };
    const now = clock.monotonic();
    const slow = [...this.#tasks.values()].find(
      ({ phase, isFollowed, since }) => phase === "waiting" && !isFollowed && now - since > SLOW_MS,
    );
    if (slow === undefined) return { ok: true, message: `${this.#tasks.size} evictions in progress` };
    const seconds = Math.round((now - slow.since) / 1000);
    return {
      ok: false,
      message: `the eviction of ${slow.pod.namespace}/${slow.pod.name} has not been accepted for ${seconds} s: ${slow.lastStep}`,
      errorId: "NK1601",
    };
  }
}

function attempts(count: number): string {
  return count === 1 ? "1 attempt" : `${count} attempts`;
}

function referenceTo({ uid, namespace, name }: PodReference): PodReference {
  return { uid, namespace, name };
}
