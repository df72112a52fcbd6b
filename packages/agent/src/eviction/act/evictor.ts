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
import type { PodReference } from "../decide/pods.ts";
import type { EvictionPolicy } from "../decide/policy.ts";
import { releaseTimeMs } from "../decide/release.ts";
import type { EvictionOutcome } from "../decide/round.ts";
import type { Acceptance, BudgetStatus, PendingEviction } from "../decide/state.ts";
import type { EvictionStep, Evictor, NodePods } from "../parts.ts";
import type { ContainerDeaths } from "./container-deaths.ts";
import type { EvictionSender, NextStep } from "./eviction-sender.ts";
import { type EvictionTask, taskOf } from "./eviction-task.ts";
import type { EvictorMetrics } from "./evictor-metrics.ts";
import { aboutPod } from "./pod-resource.ts";

export interface PodEvictorOptions {
  sender: EvictionSender;
  pods: NodePods;
  /** Undefined where no container runtime is asked. */
  containers: Pick<ContainerDeaths, keyof ContainerDeaths> | undefined;
  policy: () => Pick<EvictionPolicy, "releaseMarginMs" | "longestReleaseMs">;
  events: Pick<EventRecorder, "record">;
  clock: Clock;
  log: Logger;
  metrics: EvictorMetrics;
  queueMetrics: WorkQueueMetrics;
}

const WORKERS = 8;
// Far above a sane burst; a bound for one without bound.
const MOST_UNDER_WAY = 1_000;
const MOST_TRIES = 8;
// After so many answers that refuse one pod, another gets its turn: within three rounds of the default period.
const MOST_REFUSALS = 3;
// A budget that is not counted yet is waited for once.
const MOST_REFUSALS_WITH_WAIT = 2;
// A pod whose end is due and can't be read is read again after this time, milliseconds.
const REREAD_MS = 10_000;
// An eviction that waits for longer turns the health check, milliseconds.
const SLOW_MS = 60_000;

/**
 * Sends evictions and follows each to its end.
 *
 * 1. Before anything is sent the pod is read afresh: one that is deleted is done, a terminating one is only awaited, and
 *    a protected one is left alone.
 * 2. A pod counts as deleted when the watch or the API server's own 404 says so, never by an error.
 * 3. The deadline of an eviction runs from its acceptance. A pod that is still terminating then is reported as overdue
 *    and followed on.
 * 4. What an agent before this one sent is followed and never sent again.
 */
export class PodEvictor implements Evictor, Runnable {
  readonly name = "evictor";
  readonly #options: PodEvictorOptions;
  readonly #queue: WorkQueue;
  readonly #tasks = new Map<string, EvictionTask>();
  readonly #timers = new Map<string, Timer>();
  readonly #stops = new Set<Promise<void>>();
  #outcomes: EvictionOutcome[] = [];
  #gone = 0;
  #steps: EvictionStep[] = [];
  readonly #listeners = new Set<(acceptance: Acceptance) => void>();

  constructor(options: PodEvictorOptions) {
    this.#options = options;
    const { clock, log, queueMetrics: metrics } = options;
    this.#queue = new WorkQueue({ name: "evictor", clock, log, maxKeys: 2 * MOST_UNDER_WAY, metrics });
  }

  async run(signal: AbortSignal): Promise<void> {
    const { pods, containers } = this.#options;
    const stopListening = pods.onGone((uid) => this.#podGone(uid));
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

  begin(victims: readonly Victim[]): void {
    const now = this.#options.clock.monotonic();
    for (const victim of victims) this.#add(taskOf(victim, now, false), "eviction starts");
  }

  resume(pending: readonly PendingEviction[]): void {
    const { clock } = this.#options;
    const [now, monotonic] = [clock.now(), clock.monotonic()];
    for (const pod of pending) {
      const task = taskOf(pod, monotonic - Math.max(now - pod.since, 0), true);
      task.maybeSent = true;
      task.deadline = monotonic + (pod.deadline ?? now) - now;
      this.#add(task, "followed on after a restart of the agent");
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

  /** How many evicted pods were deleted since the start. */
  get gone(): number {
    return this.#gone;
  }

  /** Fails while the agent may not evict, or an eviction waits to be taken for longer than a minute. */
  healthCheck(): HealthCheck {
    return { name: "EvictionKillerReady", kind: "ready", check: () => this.#check() };
  }

  #add(task: EvictionTask, message: string): void {
    const { uid } = task.pod;
    if (this.#tasks.has(uid)) return;
    this.#tasks.set(uid, task);
    if (this.#tasks.size > MOST_UNDER_WAY) {
      this.#end(task, "failed", `${MOST_UNDER_WAY} evictions are under way already`);
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
      this.#goOn(task, await sender.send(task, signal));
    }
  }

  #goOn(task: EvictionTask, next: NextStep): void {
    // The pod may have been deleted, and its task with it, during the call.
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

  // Waits outside of the workers. Where the wait would outlast the eviction's time, another pod gets its turn now.
  #again(task: EvictionTask, next: Extract<NextStep, { kind: "again" }>): void {
    const { clock, log } = this.#options;
    const { message, retryAfterMs, graceSeconds } = next;
    task.phase = "waiting";
    if (next.isRefused) task.refusals++;
    const delay = Math.max(retryAfterMs ?? 0, delayAfter(task.tries++, retryPolicies.eviction));
    // Of a pod that was not even read the grace period is not known.
    task.deadline ??= this.#deadline(graceSeconds ?? 0);
    const mostRefusals = retryAfterMs === undefined ? MOST_REFUSALS : MOST_REFUSALS_WITH_WAIT;
    const isOver = task.tries >= MOST_TRIES || task.refusals >= mostRefusals;
    if (isOver || clock.monotonic() + delay >= task.deadline) {
      this.#end(task, "failed", `given up at try ${task.tries}: ${message}`);
      return;
    }
    this.#step(task, `${message}; tried again in ${delay / 1000} s`);
    const { pod, tries } = task;
    log[tries === 1 ? "warn" : "debug"]({ pod, tries, message, retryInMs: delay }, "eviction is tried again");
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
    // The watch may have reported its deletion while nothing waited for that.
    if (pods.isSynced && pods.get(uid) === undefined) this.#queue.add(uid);
  }

  // A stop of containers lasts for the grace period: it must not hold a worker. Its killer has a deadline for it.
  #awaitStop(
    task: EvictionTask,
    ended: Extract<NextStep, { kind: "await" }>["ended"] & object,
    graceSeconds: number,
  ): void {
    const following = ended
      .then((end) => this.#goOn(task, this.#options.sender.ended(task, end, graceSeconds)))
      // A killer throws only the reason of the abort.
      .catch(() => {})
      .finally(() => this.#stops.delete(following));
    this.#stops.add(following);
  }

  // Reached when the deadline has passed, when the watch does not have the pod, or first of all for a followed one.
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
      case "gone":
        this.#end(task, "gone", fresh.message);
        break;
      case "unknown":
        this.#step(task, `whether the pod is deleted can't be determined: ${fresh.message}`);
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
          this.#end(task, "failed", "it was accepted, but the pod is not terminating");
        }
    }
  }

  // Whether an agent before this one stopped its containers: known from those that run at the deadline.
  #checkStopped(task: EvictionTask, deadline: number): void {
    const { clock, containers } = this.#options;
    const running = containers?.running(task.pod.uid) ?? [];
    if (clock.monotonic() < deadline) {
      this.#accepted(task, deadline);
      this.#awaitDeletion(task, deadline);
    } else if (containers && running.length === 0) {
      this.#end(task, "gone", "its containers have exited");
    } else {
      const message = `its containers were not stopped, or were started again: ${running.join(", ") || "unknown"}`;
      this.#end(task, "failed", message);
    }
  }

  // Reported once; its deletion is awaited on.
  #overdue(task: EvictionTask): void {
    if (task.isOverdue) return;
    const { log, metrics, events, containers } = this.#options;
    const { pod, plugin } = task;
    task.isOverdue = true;
    task.phase = "sent";
    const running = containers?.running(pod.uid) ?? [];
    const left = running.length > 0 ? `; still running: ${running.join(", ")}` : "";
    const message = `still terminating after its grace period and the margin${left}`;
    this.#outcomes.push({ ...referenceTo(pod), result: "overdue", sent: !task.isForeign, message });
    metrics.ended.inc({ outcome: "overdue" });
    this.#gauge();
    this.#step(task, message);
    log.warn({ pod, plugin, message }, "evicted pod is still terminating");
    if (task.isForeign) return;
    const text = `Evicted by ${plugin}, but ${message}`;
    events.record({ type: "Warning", reason: "EvictionOverdue", message: text, regarding: aboutPod(pod) });
  }

  #podGone(uid: string): void {
    const task = this.#tasks.get(uid);
    if (task) this.#end(task, "gone", "pod deleted");
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
    } else if (result === "gone") {
      this.#gone++;
      this.#step(task, message);
      metrics.duration.observe(seconds);
      log.info({ pod, plugin, seconds, message }, "evicted pod is deleted");
    } else {
      this.#step(task, `failed: ${message}`);
      log.warn({ pod, plugin, seconds, message }, "eviction failed");
      const text = `Not evicted for ${plugin}: ${message}`;
      events.record({ type: "Warning", reason: "EvictionFailed", message: text, regarding: aboutPod(pod) });
    }
    if (result === "gone") containers?.podGone(pod);
    else containers?.leave(pod.uid);
  }

  #isUnderWay(task: EvictionTask): boolean {
    return this.#tasks.get(task.pod.uid) === task;
  }

  #deadline(graceSeconds: number): number {
    const { policy, clock } = this.#options;
    return clock.monotonic() + releaseTimeMs(graceSeconds, policy());
  }

  // While the API server is unreachable the same step comes every ten seconds: recorded once.
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
    if (sender.forbidden !== undefined) return { ok: false, message: sender.forbidden };
    const now = clock.monotonic();
    const slow = [...this.#tasks.values()].find(
      ({ phase, isFollowed, since }) => phase === "waiting" && !isFollowed && now - since > SLOW_MS,
    );
    if (slow === undefined) return { ok: true, message: `${this.#tasks.size} evictions under way` };
    const seconds = Math.round((now - slow.since) / 1000);
    return {
      ok: false,
      message: `the eviction of ${slow.pod.namespace}/${slow.pod.name} has not been taken for ${seconds} s`,
    };
  }
}

function referenceTo({ uid, namespace, name }: PodReference): PodReference {
  return { uid, namespace, name };
}
