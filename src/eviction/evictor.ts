import type { EventRecorder } from "../kube/index.ts";
import {
  type Clock,
  delayAfter,
  type HealthCheck,
  type HealthResult,
  type Logger,
  type Runnable,
  type Timer,
  WorkQueue,
  type WorkQueueMetrics,
} from "../lib/index.ts";
import type { ContainerDeaths } from "./container-deaths.ts";
import type { Victim, Withdrawal } from "./decision.ts";
import type { EvictionSender, NextStep } from "./eviction-sender.ts";
import { type EvictionTask, taskOf } from "./eviction-task.ts";
import type { EvictorMetrics } from "./evictor-metrics.ts";
import type { EvictionStep, Evictor, NodePods } from "./parts.ts";
import { aboutPod } from "./pod-resource.ts";
import type { EvictionPolicy } from "./policy.ts";
import type { EvictionOutcome } from "./round.ts";
import type { PendingEviction } from "./state.ts";

export interface PodEvictorOptions {
  sender: EvictionSender;
  pods: NodePods;
  /** Undefined where no container runtime is asked. */
  containers: ContainerDeaths | undefined;
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
const BACKOFF = { baseMs: 500, maxMs: 15_000, jitter: 0 };
// A pod whose end is due and can't be read is read again after this time, milliseconds.
const REREAD_MS = 10_000;
// An eviction that waits for longer turns the health check, milliseconds.
const SLOW_MS = 60_000;

/**
 * Sends evictions and follows each to its end. Before anything is sent the pod is read afresh: one that is gone is
 * done, one on its way out is only awaited, and a protected one is left alone. A pod counts as gone when the watch or
 * the API server's own 404 says so, never by an error. What is decided is in the state database before it is begun,
 * so that after a kill it is begun again, and whatever was done already shows in the fresh reading.
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
    const now = this.#options.clock.now();
    for (const victim of victims) this.#add(taskOf(victim, now, false), "eviction begins");
  }

  resume(pending: readonly PendingEviction[]): void {
    for (const pod of pending) {
      this.#add(taskOf(pod, pod.since, true), "taken up again after a restart of the agent");
    }
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

  /** How many evicted pods are gone since the start. */
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
    if (task.phase === "sent") {
      await this.#checkSent(task, signal);
    } else if (task.withdrawn !== undefined && !task.maybeSent) {
      this.#end(task, "withdrawn", task.withdrawn);
    } else {
      this.#goOn(task, await sender.send(task, signal));
    }
  }

  #goOn(task: EvictionTask, next: NextStep): void {
    // The pod may have gone, and its task with it, during the call.
    if (!this.#isUnderWay(task)) return;
    switch (next.kind) {
      case "end":
        this.#end(task, next.result, next.message);
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
  #again(
    task: EvictionTask,
    { message, retryAfterMs, graceSeconds }: Extract<NextStep, { kind: "again" }>,
  ): void {
    const { clock, log } = this.#options;
    task.phase = "waiting";
    const delay = Math.max(retryAfterMs ?? 0, delayAfter(task.tries++, BACKOFF));
    // Of a pod that was not even read the grace period is not known.
    task.deadline ??= this.#deadline(graceSeconds ?? 0);
    if (task.tries >= MOST_TRIES || clock.monotonic() + delay >= task.deadline) {
      this.#end(task, "failed", `given up at try ${task.tries}: ${message}`);
      return;
    }
    this.#step(task, `${message}; tried again in ${delay / 1000} s`);
    const { pod, tries } = task;
    log[tries === 1 ? "warn" : "debug"]({ pod, tries, message, retryInMs: delay }, "eviction is tried again");
    this.#queue.addAfter(task.pod.uid, delay);
  }

  #await(task: EvictionTask, next: Extract<NextStep, { kind: "await" }>): void {
    const { clock, pods } = this.#options;
    const { uid } = task.pod;
    task.phase = "sent";
    task.deadline = this.#deadline(next.graceSeconds);
    this.#gauge();
    this.#step(task, next.message);
    if (next.ended) {
      this.#awaitStop(task, next.ended, next.graceSeconds);
      return;
    }
    const timer = clock.after(task.deadline - clock.monotonic(), () => this.#queue.add(uid));
    this.#timers.set(uid, timer);
    // The watch may have told of its going while nobody waited for that.
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

  // Reached when the deadline has passed, or when the watch does not have the pod.
  async #checkSent(task: EvictionTask, signal: AbortSignal): Promise<void> {
    const { clock, sender, containers } = this.#options;
    const fresh = await sender.read(task, signal);
    if (!this.#isUnderWay(task)) return;
    if (fresh.kind === "gone") {
      this.#end(task, "gone", fresh.message);
    } else if (fresh.kind === "unknown") {
      this.#step(task, `whether it is gone can't be said: ${fresh.message}`);
      this.#queue.addAfter(task.pod.uid, REREAD_MS);
    } else if (clock.monotonic() >= (task.deadline ?? 0)) {
      const running = containers?.running(task.pod.uid) ?? [];
      const left = running.length > 0 ? `; still running: ${running.join(", ")}` : "";
      this.#end(task, "failed", `still there after its grace period and the margin${left}`);
    }
  }

  #podGone(uid: string): void {
    const task = this.#tasks.get(uid);
    if (task) this.#end(task, "gone", "gone from the API server");
  }

  #end(task: EvictionTask, result: EvictionOutcome["result"], message: string): void {
    const { clock, log, metrics, containers, events } = this.#options;
    const { pod, plugin } = task;
    this.#tasks.delete(pod.uid);
    this.#timers.get(pod.uid)?.cancel();
    this.#timers.delete(pod.uid);
    this.#outcomes.push({ uid: pod.uid, result, message });
    metrics.ended.inc({ outcome: result });
    this.#gauge();
    const seconds = Math.max(clock.now() - task.since, 0) / 1000;
    if (result === "withdrawn") {
      log.info({ pod, plugin, message }, "eviction withdrawn");
    } else if (result === "gone") {
      this.#gone++;
      this.#step(task, message);
      metrics.duration.observe(seconds);
      log.info({ pod, plugin, seconds, message }, "evicted pod is gone");
    } else {
      this.#step(task, `failed: ${message}`);
      log.warn({ pod, plugin, seconds, message }, "eviction failed");
      const told = `Not evicted for ${plugin}: ${message}`;
      events.record({ type: "Warning", reason: "EvictionFailed", message: told, regarding: aboutPod(pod) });
    }
    if (result === "gone") containers?.podGone(pod);
    else containers?.leave(pod.uid);
  }

  #isUnderWay(task: EvictionTask): boolean {
    return this.#tasks.get(task.pod.uid) === task;
  }

  #deadline(graceSeconds: number): number {
    const { policy, clock } = this.#options;
    const { releaseMarginMs, longestReleaseMs } = policy();
    return clock.monotonic() + Math.min(graceSeconds * 1000 + releaseMarginMs, longestReleaseMs);
  }

  // An API server that is away for a day says the same every ten seconds: told once.
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
    const now = clock.now();
    const slow = [...this.#tasks.values()].find(
      ({ phase, since }) => phase === "waiting" && now - since > SLOW_MS,
    );
    if (slow === undefined) return { ok: true, message: `${this.#tasks.size} evictions under way` };
    const seconds = Math.round((now - slow.since) / 1000);
    return {
      ok: false,
      message: `the eviction of ${slow.pod.namespace}/${slow.pod.name} has not been taken for ${seconds} s`,
    };
  }
}
