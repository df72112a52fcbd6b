import {
  type BudgetStatus,
  type EvictionOutcome,
  earlierRequestText,
  isUncertain,
  type PendingEviction,
  type PodReference,
  referenceTo,
} from "@nodekeeper/api/decide";
import { EvictedPodNotTerminating, EvictionFailed, EvictionNotAccepted } from "@nodekeeper/api/errors";
import { outcomeText } from "@nodekeeper/api/wording";
import type { NewMark } from "../../state/index.ts";
import { aboutPod } from "../about-pod.ts";
import type { EvictionContext } from "../context.ts";
import type { EvictionLedger } from "../ledger.ts";
import { markOf } from "../records/decision-log.ts";
import type { EvictionTask } from "./eviction-task.ts";

/** Marks are added when an eviction ends or is overdue. */
export interface EvictionJournalOptions
  extends Pick<EvictionContext, "events" | "marks" | "clock" | "log" | "metrics"> {
  ledger: Pick<EvictionLedger, "outcome" | "step">;
}

/** How an eviction ended, as its evictor reports it. */
export interface EvictionEnd extends Pick<EvictionOutcome, "result" | "message"> {
  budget?: BudgetStatus | undefined;
  /** The agent lacks a right and can't evict any pod: no Event is recorded for each. */
  isForbidden?: boolean | undefined;
}

/**
 * Passes the steps and outcomes of evictions to the ledger, counts and logs them, and reports them as Events and marks.
 * Each statement about a pod follows from the known state of its requests.
 */
export class EvictionJournal {
  readonly #options: EvictionJournalOptions;
  #evicted = 0;

  constructor(options: EvictionJournalOptions) {
    this.#options = options;
  }

  /** The number of pods evicted since the agent's start: outcomes `terminated`. */
  get evicted(): number {
    return this.#evicted;
  }

  /** Records a step. A repeated step, for example while the API server is unreachable, is recorded once. */
  step(task: EvictionTask, message: string): void {
    if (task.lastStep === message) return;
    task.lastStep = message;
    this.#options.ledger.step(task.pod.uid, message);
  }

  /** Records the Event `Evicted`. Call once the API server has accepted the eviction or the containers were stopped. */
  accepted({ pod, plugin, reason }: EvictionTask): void {
    const message = `Evicted by ${plugin}: ${reason}`;
    this.#event({ reason: "Evicted", message, pod });
  }

  /**
   * Records the outcome `overdue`, a step and the Event `EvictionOverdue`, and logs a warning. Call if the pod is still
   * terminating after the deadline of its accepted eviction.
   */
  overdue(task: EvictionTask, message: string): void {
    const { log } = this.#options;
    const { pod, plugin } = task;
    this.#add(task, { result: "overdue", message });
    this.step(task, message);
    log.warn(
      { errorId: EvictedPodNotTerminating.id, pod, plugin, message },
      "evicted pod is still terminating",
    );
    this.#event({ reason: "EvictionOverdue", message: `Evicted by ${plugin}, but ${message}`, pod });
  }

  /**
   * Records the outcome of an eviction that has ended, and logs it. A failure is also reported by the Event
   * `EvictionFailed`, unless `isForbidden` is set.
   */
  ended(task: EvictionTask, end: EvictionEnd): void {
    const { log, clock, metrics } = this.#options;
    const { pod, plugin } = task;
    const { result, message, budget } = end;
    const outcome = this.#add(task, end);
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
        log.info(
          line,
          task.stopsContainers ? "containers of evicted pod were stopped" : "evicted pod was deleted",
        );
        break;
      case "superseded":
        this.#lastStep(task, message);
        log.info(line, "pod ended before its eviction was accepted");
        break;
      case "unknown":
        this.#lastStep(task, message);
        log.info(line, "pod ended; unknown whether its eviction was accepted");
        break;
      default: {
        const isOpen = isUncertain(outcome) && outcome.sent === true;
        const text = isUncertain(outcome) && !isOpen ? `${message}; ${earlierRequestText}` : message;
        this.step(task, `${isOpen ? "given up" : "failed"}: ${text}`);
        log.warn(
          { errorId: budget === undefined ? EvictionFailed.id : EvictionNotAccepted.id, ...line },
          isOpen ? "gave up on eviction; unknown whether a request was accepted" : "eviction failed",
        );
        if (end.isForbidden) break;
        const how = isOpen ? "was given up; unknown whether it was accepted" : "failed";
        this.#event({
          reason: "EvictionFailed",
          message: `Eviction requested by ${plugin} ${how}: ${text}`,
          pod,
        });
      }
    }
  }

  // Records the last step, unless the pod may have ended before a restart: the time is then unknown, and the end is
  // only in the pod's history.
  #lastStep(task: EvictionTask, message: string): void {
    if (isEndSeen(task)) this.step(task, message);
  }

  /** Logs, counts and marks the outcome of an eviction that a restart interrupted. The first round records it. */
  interrupted({ plugin, ...eviction }: PendingEviction, outcome: EvictionOutcome): void {
    const { result, message } = outcome;
    const pod = referenceTo(eviction);
    this.#options.log.info({ pod, plugin, result, message }, "eviction that a restart interrupted has ended");
    this.#count(pod, plugin, outcome);
  }

  /**
   * Counts and marks an outcome that the previous agent saved and the first round records. That agent ended
   * soon after: it may not have added the mark, and its counter was probably never scraped.
   */
  endedBefore(outcome: EvictionOutcome): void {
    const { uid, namespace, name, endedAt: at } = outcome;
    this.#options.metrics.ended.inc({ outcome: outcome.result });
    // Outcomes saved by older agents have no namespace and name.
    if (namespace === undefined || name === undefined) return;
    const mark = endMark({ uid, namespace, name }, undefined, outcome);
    if (mark) this.#options.marks.addMissing({ ...mark, ...(at === undefined ? {} : { at }) });
  }

  #add(task: EvictionTask, { result, message, budget }: EvictionEnd): EvictionOutcome {
    const { clock, ledger } = this.#options;
    const { pod, plugin, requests, sentBefore, releasingSince, stopsContainers } = task;
    const now = clock.now();
    const isAccepted = requests === "accepted" && releasingSince !== undefined;
    const outcome: EvictionOutcome = {
      ...referenceTo(pod),
      result,
      sent: requests !== "none",
      ...(sentBefore ? { sentBefore } : {}),
      ...(stopsContainers ? { stopsContainers } : {}),
      ...(isAccepted ? { acceptedAt: now - clock.monotonic() + releasingSince } : {}),
      ...(isEndSeen(task) ? { endedAt: now } : {}),
      message,
      budget: budget ?? null,
    };
    ledger.outcome(outcome);
    this.#count(pod, plugin, outcome);
    return outcome;
  }

  #count(pod: PodReference, plugin: string, outcome: EvictionOutcome): void {
    const { metrics, marks } = this.#options;
    metrics.ended.inc({ outcome: outcome.result });
    const mark = endMark(pod, plugin, outcome);
    if (mark) marks.add([mark]);
  }

  #event({ reason, message, pod }: { reason: string; message: string; pod: PodReference }): void {
    this.#options.events.record({ type: "Warning", reason, message, regarding: aboutPod(pod) });
  }
}

// Undefined for an eviction that has certainly had no effect.
function endMark(
  pod: PodReference,
  plugin: string | undefined,
  outcome: EvictionOutcome,
): NewMark | undefined {
  if (outcome.result === "withdrawn" && !isUncertain(outcome)) return undefined;
  return markOf({ kind: "evictionEnded", pod, plugin, text: outcomeText(outcome) });
}

// After a restart of the agent, a pod that was not seen terminating may have ended at any time.
function isEndSeen({ isFollowed, phase }: EvictionTask): boolean {
  return !isFollowed || phase === "sent";
}
