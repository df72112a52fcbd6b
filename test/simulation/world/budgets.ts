import type { KubeObject } from "@nodekeeper/core/kube";
import type { Machine } from "../machine/machine.ts";
import type { ApiServer } from "./api-server.ts";
import type { History } from "./history.ts";

const BUDGETS = "poddisruptionbudgets.policy";
const NAMESPACE = "default";

type Bound = { minAvailable: number | string } | { maxUnavailable: number };

interface BudgetStatus {
  observedGeneration: number;
  expectedPods: number;
  desiredHealthy: number;
  currentHealthy: number;
  disruptionsAllowed: number;
}

const bounds: readonly Bound[] = [
  { maxUnavailable: 0 },
  { maxUnavailable: 1 },
  { minAvailable: 1 },
  { minAvailable: "100%" },
];
const unobserved: BudgetStatus = {
  observedGeneration: 0,
  expectedPods: 0,
  desiredHealthy: 0,
  currentHealthy: 0,
  disruptionsAllowed: 0,
};

/** PodDisruptionBudgets of the workloads, those who write them, and the disruption controller. */
export class Budgets {
  readonly #machine: Machine;
  readonly #history: History;
  readonly #api: ApiServer;

  constructor(machine: Machine, history: History, api: ApiServer) {
    this.#machine = machine;
    this.#history = history;
    this.#api = api;
  }

  /** Creates, changes or removes a budget. Two budgets can select the same pods. */
  change(): void {
    const { store } = this.#api;
    const machine = this.#machine;
    const app = machine.pick(["web", "db", "train", "tune"]);
    const name = machine.chance(0.1) ? `${app}-second` : app;
    const before = store.get(BUDGETS, name, NAMESPACE);
    if (before && machine.chance(0.4)) {
      this.#history.note("operator", `deletes the disruption budget ${name}`);
      store.delete(BUDGETS, name, NAMESPACE);
      return;
    }
    const bound = machine.pick(bounds);
    this.#history.note("operator", `writes the disruption budget ${name}: ${JSON.stringify(bound)}`);
    store.put({
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: { name, namespace: NAMESPACE, generation: (before?.metadata.generation ?? 0) + 1 },
      spec: { ...bound, selector: { matchLabels: { app } } },
      status: (before as { status?: BudgetStatus } | undefined)?.status ?? unobserved,
    } as KubeObject);
  }

  /** Counts pods as the disruption controller does, and writes what changed. */
  control(): void {
    const { store } = this.#api;
    for (const budget of store.list(BUDGETS)) {
      const status = this.#statusOf(budget);
      if (JSON.stringify(status) !== JSON.stringify((budget as { status?: unknown }).status))
        store.put({ ...budget, status } as KubeObject);
    }
  }

  /** Returns the beginnings of the names of pods that a budget selects. */
  get protectedNames(): string[] {
    return this.#api.store.list(BUDGETS).map((budget) => `${appOf(budget)}-`);
  }

  #statusOf(budget: KubeObject): BudgetStatus {
    const pods = this.#api.store
      .list("pods", NAMESPACE)
      .filter(({ metadata }) => metadata.labels?.app === appOf(budget));
    const healthy = pods.filter((pod) => isReady(pod) && pod.metadata.deletionTimestamp === undefined);
    const { spec, metadata } = budget as KubeObject & { spec: Bound };
    const [expectedPods, currentHealthy] = [pods.length, healthy.length];
    const desiredHealthy = desiredOf(spec, expectedPods);
    const disruptionsAllowed = expectedPods > 0 ? Math.max(currentHealthy - desiredHealthy, 0) : 0;
    const observedGeneration = metadata.generation ?? 1;
    return { observedGeneration, expectedPods, desiredHealthy, currentHealthy, disruptionsAllowed };
  }
}

function appOf(budget: KubeObject): string {
  return (budget as unknown as { spec: { selector: { matchLabels: { app: string } } } }).spec.selector
    .matchLabels.app;
}

function isReady(pod: KubeObject): boolean {
  const { conditions = [] } = (pod.status ?? {}) as { conditions?: { type: string; status: string }[] };
  return conditions.some(({ type, status }) => type === "Ready" && status === "True");
}

function desiredOf(bound: Bound, expected: number): number {
  if ("maxUnavailable" in bound) return Math.max(expected - bound.maxUnavailable, 0);
  return bound.minAvailable === "100%" ? expected : Number(bound.minAvailable);
}
