import type { EventRecorder, KubeClient } from "@nodekeeper/core/kube";
import type { Clock } from "@nodekeeper/core/lib";
import type { BudgetStatus, EvictionOutcome } from "../decide/outcome.ts";
import type { EvictionPod } from "../decide/pods.ts";
import type { SkipRules } from "../decide/policy.ts";
import type { QosLevelReader } from "../observe/qos-level.ts";
import type { EvictionTask } from "./eviction-task.ts";
import type { EvictorMetrics } from "./evictor-metrics.ts";
import { type FreshPod, readFreshPod } from "./fresh-pod.ts";
import {
  type KillEnd,
  type Killer,
  type KillerName,
  type KillerTable,
  type KillResult,
  killerFor,
} from "./killer.ts";
import { aboutPod } from "./pod-resource.ts";

export interface EvictionSenderOptions {
  client: Pick<KubeClient, "get">;
  nodeName: string;
  /** The killers of this agent; `containerStop` needs a container runtime. */
  killers: readonly Killer[];
  killerTable: () => KillerTable;
  skip: () => SkipRules;
  /** As of `observeJson`. */
  qosLevelOf?: QosLevelReader;
  events: Pick<EventRecorder, "record">;
  clock: Clock;
  metrics: EvictorMetrics;
}

// How long a missing right is reported after the last failed attempt, milliseconds. Without evictions the agent does not
// learn that the right was granted.
const FORBIDDEN_LASTS_MS = 10 * 60_000;

/** The next step of an eviction. */
export type NextStep =
  | { kind: "end"; result: EvictionOutcome["result"]; message: string; budget?: BudgetStatus | undefined }
  /** `isRefused`: the server answered, and the reason may be about this pod. */
  | {
      kind: "again";
      message: string;
      retryAfterMs: number | undefined;
      graceSeconds: number | undefined;
      isRefused: boolean;
    }
  /** The eviction was accepted. It ends when `ended` resolves; without `ended`, when the pod is deleted. */
  | { kind: "await"; message: string; graceSeconds: number; ended: Promise<KillEnd> | undefined };

/** Makes eviction attempts: reads the pod again from the API server, and evicts it if it may still be evicted. */
export class EvictionSender {
  readonly #options: EvictionSenderOptions;
  readonly #killers: ReadonlyMap<KillerName, Killer>;
  #forbidden: { message: string; at: number } | undefined;

  constructor(options: EvictionSenderOptions) {
    this.#options = options;
    this.#killers = new Map(options.killers.map((killer) => [killer.name, killer]));
  }

  /** Why the agent can't evict any pod, as of its last attempt; undefined ten minutes after that attempt. */
  get forbidden(): string | undefined {
    if (this.#forbidden === undefined) return undefined;
    const { message, at } = this.#forbidden;
    return this.#options.clock.monotonic() - at < FORBIDDEN_LASTS_MS ? message : undefined;
  }

  /** Makes one attempt. Throws only the signal's reason. */
  async send(task: EvictionTask, signal: AbortSignal): Promise<NextStep> {
    const fresh = await this.read(task, signal);
    switch (fresh.kind) {
      case "terminated":
        return end("terminated", fresh.message);
      case "protected":
        return end("failed", fresh.message);
      case "terminating": {
        const graceSeconds = graceOf(task, fresh.pod);
        task.isForeign = !task.maybeSent;
        if (task.maybeSent) this.#recordEvicted(task);
        const message = task.isForeign
          ? "another client deleted the pod before its eviction was sent"
          : "the pod is terminating: an earlier attempt was accepted";
        return { kind: "await", message, graceSeconds, ended: undefined };
      }
      case "unknown":
        if (fresh.isForbidden) this.#forbid(fresh.message);
        return {
          kind: "again",
          message: fresh.message,
          retryAfterMs: fresh.retryAfterMs,
          graceSeconds: undefined,
          isRefused: false,
        };
      case "present":
        if (task.withdrawn !== undefined) return end("withdrawn", task.withdrawn);
        return await this.#kill(task, fresh.pod, signal);
    }
  }

  /** Whether such a pod is evicted by stopping its containers, so that the Pod object stays. */
  stopsContainers(pod: EvictionPod): boolean {
    return killerFor(pod, this.#options.killerTable()) === "containerStop";
  }

  /** Reads the pod from the API server, without evicting it. */
  async read({ pod }: EvictionTask, signal: AbortSignal): Promise<FreshPod> {
    const { client, nodeName, skip, qosLevelOf } = this.#options;
    return await readFreshPod({ client, nodeName, skip: skip(), qosLevelOf }, pod, signal);
  }

  /** The next step after a killer's result. */
  ended(task: EvictionTask, result: KillEnd, graceSeconds: number | undefined): NextStep {
    if (result.kind === "terminated") return end("terminated", result.message);
    if (result.kind === "failed") {
      if (result.isForbidden) this.#forbid(result.message);
      return { ...end("failed", result.message), budget: result.budget };
    }
    const { message, retryAfterMs, maybeSent, isThrottled } = result;
    task.maybeSent ||= maybeSent;
    return { kind: "again", message, retryAfterMs, graceSeconds, isRefused: !isThrottled };
  }

  async #kill(task: EvictionTask, pod: EvictionPod, signal: AbortSignal): Promise<NextStep> {
    const { killerTable, metrics } = this.#options;
    const name = killerFor(pod, killerTable());
    const killer = this.#killers.get(name);
    if (killer === undefined) {
      const message = `the killer ${name} needs a container runtime, and none is configured`;
      this.#forbid(message);
      return end("failed", message);
    }
    task.isSending = true;
    const result = await killer.kill(
      {
        pod: task.pod,
        gracePeriodSeconds: task.gracePeriodSeconds,
        ownGracePeriodSeconds: pod.gracePeriodSeconds,
        containers: task.containers,
      },
      signal,
    );
    task.isSending = false;
    metrics.kills.inc({ killer: name, result: labelOf(result) });
    this.#forbidden = undefined;
    const graceSeconds = graceOf(task, pod);
    if (result.kind !== "accepted") return this.ended(task, result, graceSeconds);
    task.containers ??= result.containers;
    this.#recordEvicted(task);
    return { kind: "await", message: result.message, graceSeconds, ended: result.ended };
  }

  #recordEvicted({ pod, plugin, reason }: EvictionTask): void {
    const message = `Evicted by ${plugin}: ${reason}`;
    this.#options.events.record({ type: "Warning", reason: "Evicted", message, regarding: aboutPod(pod) });
  }

  #forbid(message: string): void {
    this.#forbidden = { message, at: this.#options.clock.monotonic() };
  }
}

function end(result: EvictionOutcome["result"], message: string): Extract<NextStep, { kind: "end" }> {
  return { kind: "end", result, message };
}

function graceOf({ gracePeriodSeconds }: EvictionTask, pod: EvictionPod): number {
  return gracePeriodSeconds ?? pod.gracePeriodSeconds;
}

function labelOf(result: KillResult): string {
  if (result.kind !== "failed") return result.kind;
  if (result.isBudget) return "budget";
  return result.isForbidden ? "forbidden" : "failed";
}
