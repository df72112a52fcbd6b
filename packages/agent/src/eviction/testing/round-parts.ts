import type { DesiredNodeCondition } from "../act/node-condition.ts";
import type { BlockedCondition } from "../blocked-evictions.ts";
import type { Victim, Withdrawal } from "../decide/decision.ts";
import type { EvictionOutcome } from "../decide/outcome.ts";
import type { EvictionProgress, PendingEviction } from "../decide/state.ts";
import type { DesiredTaints } from "../decide/taints.ts";
import { type EncodablePod, observeJson } from "../observe/observed-pod.ts";
import type { EvictionStep, Evictor, NodePods, Tainter } from "../parts.ts";
import { testNode } from "./rounds.ts";

/** A pod in the API server's JSON; its UID is its name. */
export function jsonPod(name: string, changes: { spec?: object; metadata?: object; status?: object } = {}) {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { uid: name, name, namespace: "default", resourceVersion: "1", ...changes.metadata },
    spec: { nodeName: testNode, containers: [{ name: "app", image: "app" }], ...changes.spec },
    status: { phase: "Running", ...changes.status },
  };
}

export class FakePods implements NodePods {
  isSynced = true;
  readonly pods = new Map<string, EncodablePod>();

  constructor(...names: string[]) {
    for (const name of names) this.pods.set(name, observeJson(jsonPod(name)));
  }

  list(): EncodablePod[] {
    return [...this.pods.values()];
  }

  get(uid: string): EncodablePod | undefined {
    return this.pods.get(uid);
  }

  onDeleted(): () => void {
    return () => {};
  }
}

/** Records its calls; `onStart` may throw. */
export class FakeEvictor implements Evictor {
  readonly started: Victim[] = [];
  readonly resumed: PendingEviction[] = [];
  readonly interrupted: EvictionOutcome[] = [];
  readonly withdrawn: Withdrawal[] = [];
  outcomes: EvictionOutcome[] = [];
  steps: EvictionStep[] = [];
  forbidden: string | undefined;
  /** Reports progress of an eviction. */
  advance: (progress: EvictionProgress) => void = () => {};
  /** Called when evictions start. */
  onStart: (victims: readonly Victim[], roundId: number) => void = () => {};

  start(victims: readonly Victim[], roundId: number): void {
    this.onStart(victims, roundId);
    this.started.push(...victims);
  }

  onProgress(listener: (progress: EvictionProgress) => void): () => void {
    this.advance = listener;
    return () => {};
  }

  /** Reports that an eviction was sent and accepted; monotonic times. */
  accept({ uid, at, deadline }: Omit<EvictionProgress, "stage">): void {
    this.advance({ uid, stage: "sending", at, deadline: null });
    this.advance({ uid, stage: "accepted", at, deadline });
  }

  withdraw(withdrawals: readonly Withdrawal[]): void {
    this.withdrawn.push(...withdrawals);
  }

  resume(pending: readonly PendingEviction[]): void {
    this.resumed.push(...pending);
  }

  reportInterrupted(_eviction: PendingEviction, outcome: EvictionOutcome): void {
    this.interrupted.push(outcome);
  }

  takeOutcomes(): EvictionOutcome[] {
    return this.outcomes.splice(0);
  }

  takeSteps(): EvictionStep[] {
    return this.steps.splice(0);
  }
}

export class FakeTainter implements Tainter {
  readonly desired: (DesiredTaints & { isComplete: boolean })[] = [];
  /** How many rounds left the taints as they are. */
  suspended = 0;

  setDesired(taints: DesiredTaints, isComplete: boolean): void {
    this.desired.push({ ...taints, isComplete });
  }

  suspend(): void {
    this.suspended++;
  }
}

/** Records the desired conditions, once for each change. */
export class FakeCondition implements BlockedCondition {
  readonly desired: (DesiredNodeCondition | undefined)[] = [];
  lastError: string | undefined;

  setDesired(desired: DesiredNodeCondition | undefined): void {
    if (JSON.stringify(desired) !== JSON.stringify(this.desired.at(-1))) this.desired.push(desired);
  }
}
