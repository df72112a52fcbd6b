import type { EventRecorder } from "@nodekeeper/core/kube";
import type { Clock, Logger } from "@nodekeeper/core/lib";
import type { BudgetStatus, EvictionOutcome } from "../decide/outcome.ts";
import { type PodReference, referenceTo } from "../decide/pods.ts";
import type { PendingEviction } from "../decide/state.ts";
import type { EvictionStep } from "../parts.ts";
import { outcomeText } from "../wording/text.ts";
import type { EvictionTask } from "./eviction-task.ts";
import type { EvictorMetrics } from "./evictor-metrics.ts";
import { aboutPod } from "./pod-resource.ts";

export interface EvictionJournalOptions {
  events: Pick<EventRecorder, "record">;
  /** Called when an eviction has ended, or is overdue. */
  onEnded: (pod: PodReference, plugin: string, text: string) => void;
  clock: Clock;
  log: Logger;
  metrics: EvictorMetrics;
}

/** How an eviction ended, as its evictor reports it. */
export interface EvictionEnd extends Pick<EvictionOutcome, "result" | "message"> {
  budget?: BudgetStatus | undefined;
  /** The agent lacks a right, so that every pod would be refused: there is no Event for each. */
  isForbidden?: boolean | undefined;
}

/**
 * Steps and outcomes of evictions: kept until a round records them, counted, logged, and reported as Events and marks. What
 * each states about a pod follows from what is known of its requests.
 */
export class EvictionJournal {
  readonly #options: EvictionJournalOptions;
  #outcomes: EvictionOutcome[] = [];
  #steps: EvictionStep[] = [];
  #evicted = 0;

  constructor(options: EvictionJournalOptions) {
    this.#options = options;
  }

  /** The number of pods that were evicted since the agent's start: outcomes `terminated`. */
  get evicted(): number {
    return this.#evicted;
  }

  /** Records a step. One that repeats, as while the API server is unreachable, is recorded once. */
  step(task: EvictionTask, message: string): void {
    if (task.lastStep === message) return;
    task.lastStep = message;
    this.#steps.push({ uid: task.pod.uid, at: this.#options.clock.now(), message });
  }

  /** The eviction was accepted by the API server, or the containers were stopped. */
  accepted({ pod, plugin, reason }: EvictionTask): void {
    const message = `Evicted by ${plugin}: ${reason}`;
    this.#event({ reason: "Evicted", message, pod });
  }

  /** The pod is still terminating after the deadline of its accepted eviction. */
  overdue(task: EvictionTask, message: string): void {
    const { log } = this.#options;
    const { pod, plugin } = task;
    this.#add(task, { result: "overdue", message });
    this.step(task, message);
    log.warn({ errorId: "NK1610", pod, plugin, message }, "evicted pod is still terminating");
    this.#event({ reason: "EvictionOverdue", message: `Evicted by ${plugin}, but ${message}`, pod });
  }

  /** The eviction has ended. */
  ended(task: EvictionTask, end: EvictionEnd): void {
    const { log, clock, metrics } = this.#options;
    const { pod, plugin } = task;
    const { result, message, budget } = end;
    this.#add(task, end);
    const seconds = (clock.monotonic() - task.since) / 1000;
    const line = { pod, plugin, seconds, message };
    switch (result) {
      case "withdrawn":
        log.info({ pod, plugin, message }, "eviction withdrawn");
        break;
      case "terminated":
        this.#evicted++;
        if (isEndSeen(task)) metrics.duration.observe(seconds);
        this.#lastStep(task, message);
        log.info(line, "evicted pod was deleted");
        break;
      case "superseded":
        this.#lastStep(task, message);
        log.info(line, "pod ended before its eviction was accepted");
        break;
      case "unknown":
        this.#lastStep(task, message);
        log.info(line, "pod ended, and whether its eviction was accepted is not known");
        break;
      default:
        this.step(task, `failed: ${message}`);
        log.warn({ errorId: budget === undefined ? "NK1602" : "NK1601", ...line }, "eviction failed");
        if (end.isForbidden) break;
        this.#event({
          reason: "EvictionFailed",
          message: `Eviction requested by ${plugin} failed: ${message}`,
          pod,
        });
    }
  }

  // An end that was found after a restart has no known time: the history of the pod states what is known of it.
  #lastStep(task: EvictionTask, message: string): void {
    if (isEndSeen(task)) this.step(task, message);
  }

  /** An eviction that a restart interrupted has an outcome, which the first round records. */
  interrupted({ plugin, ...eviction }: PendingEviction, { result, message }: EvictionOutcome): void {
    const pod = referenceTo(eviction);
    this.#options.log.info({ pod, plugin, result, message }, "eviction that a restart interrupted has ended");
    this.#count(pod, plugin, { result, message });
  }

  /** Returns and clears the outcomes since the last call. */
  takeOutcomes(): EvictionOutcome[] {
    const outcomes = this.#outcomes;
    this.#outcomes = [];
    return outcomes;
  }

  /** Returns and clears the steps since the last call. */
  takeSteps(): EvictionStep[] {
    const steps = this.#steps;
    this.#steps = [];
    return steps;
  }

  #add(task: EvictionTask, { result, message, budget }: EvictionEnd): void {
    const { clock } = this.#options;
    const { pod, plugin, requests, releasingSince } = task;
    const now = clock.now();
    const isAccepted = requests === "accepted" && releasingSince !== undefined;
    this.#outcomes.push({
      ...referenceTo(pod),
      result,
      sent: requests !== "none",
      ...(isAccepted ? { acceptedAt: now - clock.monotonic() + releasingSince } : {}),
      ...(isEndSeen(task) ? { endedAt: now } : {}),
      message,
      budget: budget ?? null,
    });
    this.#count(pod, plugin, { result, message });
  }

  #count(pod: PodReference, plugin: string, end: Pick<EvictionOutcome, "result" | "message">): void {
    const { metrics, onEnded } = this.#options;
    metrics.ended.inc({ outcome: end.result });
    if (end.result !== "withdrawn") onEnded(pod, plugin, outcomeText(end));
  }

  #event({ reason, message, pod }: { reason: string; message: string; pod: PodReference }): void {
    this.#options.events.record({ type: "Warning", reason, message, regarding: aboutPod(pod) });
  }
}

// A pod that was not found terminating since a restart of the agent may have ended at any time before.
function isEndSeen({ isFollowed, phase }: EvictionTask): boolean {
  return !isFollowed || phase === "sent";
}
