import type { EventRecorder, KubeClient } from "@nodekeeper/core/kube";
import type { Clock } from "@nodekeeper/core/lib";
import type { EvictionPod } from "../decide/pods.ts";
import type { SkipRules } from "../decide/policy.ts";
import type { EvictionOutcome } from "../decide/round.ts";
import type { BudgetStatus } from "../decide/state.ts";
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
  /** Those that this agent has: stopping containers needs a container runtime. */
  killers: readonly Killer[];
  killerTable: () => KillerTable;
  skip: () => SkipRules;
  events: Pick<EventRecorder, "record">;
  clock: Clock;
  metrics: EvictorMetrics;
}

// Where no pod is evicted any more, it is not noticed that a right was given: what was refused counts no longer then,
// milliseconds. A try that fails again renews it.
const FORBIDDEN_LASTS_MS = 10 * 60_000;

/** The next step of an eviction. */
export type NextStep =
  | { kind: "end"; result: EvictionOutcome["result"]; message: string; budget?: BudgetStatus | undefined }
  /** `isRefused`: it was answered, and for a reason that may be this pod's. */
  | {
      kind: "again";
      message: string;
      retryAfterMs: number | undefined;
      graceSeconds: number | undefined;
      isRefused: boolean;
    }
  /** It was accepted. Where `ended` is there, it resolves at the end; else the pod's deletion is the end. */
  | { kind: "await"; message: string; graceSeconds: number; ended: Promise<KillEnd> | undefined };

/** Reads a pod that is to go afresh, and evicts it where that is still right. */
export class EvictionSender {
  readonly #options: EvictionSenderOptions;
  readonly #killers: ReadonlyMap<KillerName, Killer>;
  #forbidden: { message: string; at: number } | undefined;

  constructor(options: EvictionSenderOptions) {
    this.#options = options;
    this.#killers = new Map(options.killers.map((killer) => [killer.name, killer]));
  }

  /** Why the agent can't evict at all, as of its last try; undefined ten minutes after that. */
  get forbidden(): string | undefined {
    if (this.#forbidden === undefined) return undefined;
    const { message, at } = this.#forbidden;
    return this.#options.clock.monotonic() - at < FORBIDDEN_LASTS_MS ? message : undefined;
  }

  /** One try. Throws only what ends the agent: the signal's reason. */
  async send(task: EvictionTask, signal: AbortSignal): Promise<NextStep> {
    const fresh = await this.read(task, signal);
    switch (fresh.kind) {
      case "gone":
        return end("gone", fresh.message);
      case "protected":
        return end("failed", fresh.message);
      case "terminating": {
        const graceSeconds = graceOf(task, fresh.pod);
        task.isForeign = !task.maybeSent;
        if (task.maybeSent) this.#recordEvicted(task);
        const message = task.isForeign
          ? "another client deleted it before its eviction was sent"
          : "it is terminating: an earlier try was accepted";
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

  /** Whether such a pod is evicted by stopping its containers, so that the pod itself stays. */
  stopsContainers(pod: EvictionPod): boolean {
    return killerFor(pod, this.#options.killerTable()) === "containerStop";
  }

  /** Only looks. */
  async read({ pod }: EvictionTask, signal: AbortSignal): Promise<FreshPod> {
    const { client, nodeName, skip } = this.#options;
    return await readFreshPod({ client, nodeName, skip: skip() }, pod, signal);
  }

  /** The next step after a killer's result. */
  ended(task: EvictionTask, result: KillEnd, graceSeconds: number | undefined): NextStep {
    if (result.kind === "gone") return end("gone", result.message);
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
      const message = `${name}: no container runtime is asked`;
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
