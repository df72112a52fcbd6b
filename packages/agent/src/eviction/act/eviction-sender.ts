import type { EvictionPod } from "@nodekeeper/api/decide";
import type { PodEnding } from "@nodekeeper/api/records";
import type { EvictionSettings } from "@nodekeeper/api/settings";
import type { KubeClient } from "@nodekeeper/core/kube";
import type { Clock } from "@nodekeeper/core/lib";
import type { EvictionContext } from "../context.ts";
import type { EvictionEnd } from "./eviction-journal.ts";
import { type EvictionTask, isUnevicted } from "./eviction-task.ts";
import { type FreshPod, readFreshPod } from "./fresh-pod.ts";
import { type KillEnd, type Killer, type KillerName, type KillResult, killerFor } from "./killer.ts";
import { KillerHealth } from "./killer-health.ts";
import { podEndOf } from "./pod-end.ts";

export interface EvictionSenderOptions
  extends Pick<EvictionContext, "nodeName" | "policy" | "qosLevelOf" | "clock" | "metrics"> {
  client: Pick<KubeClient, "get">;
  /** The killers of this agent; `containerStop` needs a container runtime. */
  killers: readonly Killer[];
  settings: () => Pick<EvictionSettings, "killer" | "killerRules">;
}

/** The next step of an eviction. */
export type NextStep =
  | ({ kind: "end" } & EvictionEnd)
  /** The pod has changed since it was read: it is read again at once. */
  | { kind: "changed"; message: string }
  /** `isRefused`: the server answered, and its reason may be specific to this pod. */
  | {
      kind: "again";
      message: string;
      retryAfterMs: number | undefined;
      graceSeconds: number | undefined;
      isRefused: boolean;
      isForbidden?: boolean;
    }
  /**
   * The eviction was accepted, or the pod is already terminating. It ends when the pod is deleted or, if `ended` is
   * set, when that promise resolves.
   */
  | { kind: "await"; message: string; graceSeconds: number; ended: Promise<KillEnd> | undefined };

const EVICTION_API = "EvictionByEvictionAPI";
const UNRECORDED = {
  message:
    "not sent: neither the state directory nor the directory of the API socket can be written, so that limits would not count it after a restart",
  retryAfterMs: undefined,
  isRefused: false,
};
// Maximum number of attempts repeated at once because the pod had changed. If the status of a pod changes every second,
// one of a hundred attempts conflicts. Each attempt may consume a PodDisruptionBudget.
const MOST_CONFLICTS = 5;
// The API server's timestamps have a resolution of one second.
const SECOND_MS = 1_000;

/**
 * Makes eviction attempts: reads the pod again from the API server, and evicts it if it may still be evicted. Records
 * the known state of the requests in the task.
 */
export class EvictionSender {
  readonly #options: EvictionSenderOptions;
  readonly #killers: ReadonlyMap<KillerName, Killer>;
  readonly health: KillerHealth;

  constructor(options: EvictionSenderOptions) {
    this.#options = options;
    this.#killers = new Map(options.killers.map((killer) => [killer.name, killer]));
    this.health = new KillerHealth(options.clock);
  }

  /**
   * Makes one attempt. Throws only the signal's reason.
   * @param onSending called right before a request is sent. If it returns false, because the request could not be
   * recorded or the eviction has ended, the request is not sent.
   */
  async send(task: EvictionTask, onSending: () => boolean, signal: AbortSignal): Promise<NextStep> {
    const fresh = await this.read(task, signal);
    switch (fresh.kind) {
      case "deleted":
      case "replaced":
      case "finished":
        return { kind: "end", ...podEndOf(task, fresh.seen) };
      case "protected":
        return end("failed", fresh.message);
      case "terminating":
        task.disruption = disruptionText(task, fresh.ending, this.#options.clock);
        return {
          kind: "await",
          message: terminatingText(task),
          graceSeconds: graceOf(task, fresh.pod),
          ended: undefined,
        };
      case "unknown":
        if (fresh.isForbidden) this.health.forbidden(fresh.message);
        return {
          kind: "again",
          message: fresh.message,
          retryAfterMs: fresh.retryAfterMs,
          graceSeconds: undefined,
          isRefused: false,
          isForbidden: fresh.isForbidden,
        };
      case "present":
        if (task.withdrawn !== undefined) return end("withdrawn", task.withdrawn);
        return await this.#kill(task, fresh, onSending, signal);
    }
  }

  /** Reads the pod from the API server without evicting it. */
  async read(task: EvictionTask, signal: AbortSignal): Promise<FreshPod> {
    const { policy, ...options } = this.#options;
    const fresh = await readFreshPod({ ...options, skip: policy().skip }, task.pod, signal);
    task.isGone = fresh.kind === "deleted" || fresh.kind === "replaced";
    return fresh;
  }

  /** Returns the next step after a killer's result. */
  ended(
    task: EvictionTask,
    result: Exclude<KillResult, { kind: "accepted" | "unsent" }>,
    graceSeconds: number,
  ): NextStep {
    switch (result.kind) {
      case "deleted":
        task.isGone = true;
        return { kind: "end", ...podEndOf(task, result.seen) };
      case "exited":
        if (task.requests !== "none") return { kind: "end", ...podEndOf(task, result.seen) };
        if (task.withdrawn !== undefined) return end("withdrawn", task.withdrawn);
        // The pod still exists. A failed eviction pauses it, so that another pod is tried.
        return end("failed", result.seen);
      case "stopped":
        task.requests = "accepted";
        return end("terminated", result.message);
      case "failed": {
        const { message, budget, isBudget, isForbidden } = result;
        if (isForbidden) this.health.forbidden(message);
        // The API server decrements the PodDisruptionBudget before it compares resourceVersions. The disruption
        // controller restores the budget after two minutes.
        const mayBeOwn = isBudget && task.conflicts > 0;
        const cause = mayBeOwn ? `; the request that was answered 409 before may have used it` : "";
        return { ...end("failed", message + cause), budget, isForbidden };
      }
      case "retry": {
        const { message, retryAfterMs, maybeSent, isThrottled, isConflict } = result;
        if (isConflict && task.conflicts++ < MOST_CONFLICTS)
          return { kind: "changed", message: `${message}; the pod is read again` };
        if (maybeSent) Object.assign(task, { requests: "unanswered", doubt: message });
        // No call has reached the runtime.
        else if (task.requests === "underWay")
          task.requests = task.doubt === undefined ? "none" : "unanswered";
        return { kind: "again", message, retryAfterMs, graceSeconds, isRefused: !isThrottled };
      }
    }
  }

  async #kill(
    task: EvictionTask,
    { pod, resourceVersion }: Extract<FreshPod, { kind: "present" }>,
    onSending: () => boolean,
    signal: AbortSignal,
  ): Promise<NextStep> {
    const { settings, metrics } = this.#options;
    const name = killerFor(pod, settings());
    const killer = this.#killers.get(name);
    if (killer === undefined) {
      const message = `the killer ${name} needs a container runtime, and none is configured`;
      this.health.forbidden(message);
      return { ...end("failed", message), isForbidden: true };
    }
    const before = task.requests;
    const graceSeconds = graceOf(task, pod);
    task.stopsContainers = name === "containerStop";
    const result = await killer.kill(
      {
        pod: task.pod,
        resourceVersion,
        gracePeriodSeconds: task.gracePeriodSeconds,
        ownGracePeriodSeconds: pod.gracePeriodSeconds,
        containers: task.containers,
        sending: () => {
          // It may have been withdrawn while its containers were read.
          if (task.withdrawn !== undefined || !onSending()) return false;
          task.requests = "underWay";
          return true;
        },
      },
      signal,
    );
    if (result.kind === "unsent") {
      if (task.withdrawn !== undefined) return end("withdrawn", task.withdrawn);
      return { kind: "again", ...UNRECORDED, graceSeconds };
    }
    metrics.kills.inc({ killer: name, result: labelOf(result) });
    this.health.permitted();
    if (result.kind !== "accepted") {
      task.requests = before;
      return this.ended(task, result, graceSeconds);
    }
    task.containers ??= result.containers;
    // Containers count as stopped once the killer has confirmed it.
    if (!result.ended) task.requests = "accepted";
    return { kind: "await", message: result.message, graceSeconds, ended: result.ended };
  }
}

function end(result: EvictionEnd["result"], message: string): Extract<NextStep, { kind: "end" }> {
  return { kind: "end", result, message };
}

function graceOf({ gracePeriodSeconds }: EvictionTask, pod: EvictionPod): number {
  return gracePeriodSeconds ?? pod.gracePeriodSeconds;
}

function terminatingText(task: EvictionTask): string {
  const { sendingAt, disruption } = task;
  if (isUnevicted(task))
    return `the pod was terminating before its eviction was ${sendingAt === undefined ? "sent" : "accepted"}`;
  return `the pod is terminating; whether a request of its eviction was accepted is not known${disruption && `; ${disruption}`}`;
}

/**
 * Returns a description of the condition DisruptionTarget that the Eviction API set, for a request without a response;
 * empty if the condition is absent or older than the first request.
 */
function disruptionText({ sendingAt }: EvictionTask, { disruption }: PodEnding, clock: Clock): string {
  if (sendingAt === undefined || disruption?.at == null || disruption.reason !== EVICTION_API) return "";
  const sentAt = clock.now() - clock.monotonic() + sendingAt;
  if (disruption.at + SECOND_MS <= sentAt) return "";
  return `its condition DisruptionTarget has been ${EVICTION_API} since ${new Date(disruption.at).toISOString()}`;
}

function labelOf(result: KillResult): string {
  if (result.kind === "deleted") return "terminated";
  if (result.kind === "exited") return "failed";
  if (result.kind !== "failed") return result.kind;
  if (result.isBudget) return "budget";
  return result.isForbidden ? "forbidden" : "failed";
}
