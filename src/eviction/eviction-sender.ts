import type { EventRecorder, KubeClient } from "../kube/index.ts";
import type { Clock } from "../lib/index.ts";
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
import type { EvictionPod } from "./pods.ts";
import type { SkipRules } from "./policy.ts";
import type { EvictionOutcome } from "./round.ts";

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

// Where nobody is evicted any more, nobody finds out that a right was given: what was refused counts no longer then,
// milliseconds. A try that fails again renews it.
const FORBIDDEN_LASTS_MS = 10 * 60_000;

/** How an eviction goes on. */
export type NextStep =
  | { kind: "end"; result: EvictionOutcome["result"]; message: string }
  | { kind: "again"; message: string; retryAfterMs: number | undefined; graceSeconds: number | undefined }
  /** It was taken. Where `ended` is there, that tells the end; else the pod's going does. */
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
        return { kind: "await", message: "it is on its way out already", graceSeconds, ended: undefined };
      }
      case "unknown":
        if (fresh.isForbidden) this.#forbid(fresh.message);
        return {
          kind: "again",
          message: fresh.message,
          retryAfterMs: fresh.retryAfterMs,
          graceSeconds: undefined,
        };
      case "present":
        if (task.withdrawn !== undefined) return end("withdrawn", task.withdrawn);
        return await this.#kill(task, fresh.pod, signal);
    }
  }

  /** Only looks. */
  async read({ pod }: EvictionTask, signal: AbortSignal): Promise<FreshPod> {
    const { client, nodeName, skip } = this.#options;
    return await readFreshPod({ client, nodeName, skip: skip() }, pod, signal);
  }

  /** How an eviction goes on after what a killer said. */
  ended(task: EvictionTask, result: KillEnd, graceSeconds: number | undefined): NextStep {
    if (result.kind === "gone") return end("gone", result.message);
    if (result.kind === "failed") {
      if (result.isForbidden) this.#forbid(result.message);
      return end("failed", result.message);
    }
    task.maybeSent ||= result.maybeSent;
    return { kind: "again", message: result.message, retryAfterMs: result.retryAfterMs, graceSeconds };
  }

  async #kill(task: EvictionTask, pod: EvictionPod, signal: AbortSignal): Promise<NextStep> {
    const { killerTable, metrics, events } = this.#options;
    const name = killerFor(pod, killerTable());
    const killer = this.#killers.get(name);
    if (killer === undefined) {
      const message = `${name}: no container runtime is asked`;
      this.#forbid(message);
      return end("failed", message);
    }
    const result = await killer.kill(
      {
        pod: task.pod,
        gracePeriodSeconds: task.gracePeriodSeconds,
        ownGracePeriodSeconds: pod.gracePeriodSeconds,
        since: task.since,
      },
      signal,
    );
    metrics.kills.inc({ killer: name, result: labelOf(result) });
    this.#forbidden = undefined;
    const graceSeconds = graceOf(task, pod);
    if (result.kind !== "accepted") return this.ended(task, result, graceSeconds);
    const message = `Evicted by ${task.plugin}: ${task.reason}`;
    events.record({ type: "Warning", reason: "Evicted", message, regarding: aboutPod(task.pod) });
    return { kind: "await", message: result.message, graceSeconds, ended: result.ended };
  }

  #forbid(message: string): void {
    this.#forbidden = { message, at: this.#options.clock.monotonic() };
  }
}

function end(result: EvictionOutcome["result"], message: string): NextStep {
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
