import type {
  DesiredTaints,
  EvictionOutcome,
  EvictionProgress,
  PendingEviction,
  Victim,
  Withdrawal,
} from "@nodekeeper/api/decide";
import type { EvictionStep } from "@nodekeeper/api/records";
import type { DesiredNodeCondition } from "../act/node-condition.ts";
import type { BlockedCondition } from "../blocked-evictions.ts";
import type { EvictionLedger } from "../ledger.ts";
import type { EvictionManagerOptions } from "../manager.ts";
import { type EncodablePod, observeJson } from "../observe/observed-pod.ts";
import type { NodePods, Tainter } from "../parts.ts";
import { testNode } from "./rounds.ts";

/** Returns a pod in the API server's JSON, with its name as UID. */
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

  forget(uid: string): void {
    this.pods.delete(uid);
  }

  onDeleted(): () => void {
    return () => {};
  }
}

type ManagedEvictor = EvictionManagerOptions["evictor"];

/** Records its calls. `onStart` may throw. */
export class FakeEvictor implements ManagedEvictor {
  readonly started: Victim[] = [];
  readonly resumed: PendingEviction[] = [];
  readonly interrupted: EvictionOutcome[] = [];
  /** Outcomes that the agent before had saved. */
  readonly ended: EvictionOutcome[] = [];
  readonly withdrawn: Withdrawal[] = [];
  readonly #ledger: Pick<EvictionLedger, "progress" | "outcome" | "step">;
  /** Reports outcomes of evictions. */
  readonly outcomes = {
    push: (...outcomes: EvictionOutcome[]) => outcomes.forEach((one) => void this.#ledger.outcome(one)),
  };
  /** Reports steps of evictions. */
  readonly steps = { push: ({ uid, message }: EvictionStep) => this.#ledger.step(uid, message) };
  forbidden: string | undefined;
  /** Called when evictions start. */
  onStart: (victims: readonly Victim[]) => void = () => {};

  constructor(ledger: Pick<EvictionLedger, "progress" | "outcome" | "step">) {
    this.#ledger = ledger;
  }

  start(victims: readonly Victim[]): void {
    this.onStart(victims);
    this.started.push(...victims);
  }

  /** Reports progress of an eviction. */
  advance(progress: EvictionProgress): void {
    this.#ledger.progress(progress);
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

  reportEnded(outcome: EvictionOutcome): void {
    this.ended.push(outcome);
  }
}

export class FakeTainter implements Tainter {
  readonly desired: (DesiredTaints & { isComplete: boolean })[] = [];
  /** The number of rounds that left the taints unchanged. */
  suspended = 0;

  setDesired(taints: DesiredTaints, isComplete: boolean): void {
    this.desired.push({ ...taints, isComplete });
  }

  suspend(): void {
    this.suspended++;
  }
}

/** Records the desired conditions, one entry per change. */
export class FakeCondition implements BlockedCondition {
  readonly desired: (DesiredNodeCondition | undefined)[] = [];
  lastError: string | undefined;

  setDesired(desired: DesiredNodeCondition | undefined): void {
    if (JSON.stringify(desired) !== JSON.stringify(this.desired.at(-1))) this.desired.push(desired);
  }
}
