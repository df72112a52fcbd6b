import type { KubeObject } from "@nodekeeper/core/kube";
import type { Target } from "../catalogue/definition.ts";
import { at, isTree, type Tree, timestamp } from "../json.ts";
import { labelSelectorTest } from "../selectors.ts";
import { badRequest, type StatusDetails, StatusError } from "../status.ts";
import { findLive, type WriteContext } from "./context.ts";
import { type DeleteRequest, deleteObject } from "./delete.ts";

const BUDGETS = "poddisruptionbudgets.policy";
const EVICTION_API = "EvictionByEvictionAPI";

/**
 * Handles POST of an Eviction: deletes the pod unless a PodDisruptionBudget forbids it (429). Uses and decrements the
 * budget's stored `status.disruptionsAllowed`, and refuses all while the stored `status.observedGeneration` is not the
 * budget's. If they are absent, counts ready pods. As in pkg/registry/core/pod/storage/eviction.go, a request whose
 * preconditions fail (409) has consumed the budget before, and a terminating pod is accepted and not changed.
 */
export function evictPod(context: WriteContext, target: Target, eviction: unknown, dryRun: boolean): void {
  if (!isTree(eviction)) throw badRequest("the body of the request must be an Eviction");
  const pod = findLive(context, target);
  const request: DeleteRequest = { ...((eviction.deleteOptions as DeleteRequest | undefined) ?? {}), dryRun };
  const budget = isDisrupted(pod) ? undefined : budgetOf(context, pod);
  if (budget) spendDisruption(context, budget, pod, dryRun);
  // A dry run checks the preconditions before the condition changes the version.
  deleteObject(context, target, { ...request, dryRun: true });
  if (!dryRun) markDisrupted(context, pod);
  const { uid } = request.preconditions ?? {};
  deleteObject(context, target, { ...request, preconditions: uid === undefined ? {} : { uid } });
}

// Terminated, pending and terminating pods are not subject to budgets.
function isDisrupted(pod: KubeObject): boolean {
  const phase = at(pod, "status", "phase");
  return (
    phase === "Succeeded" ||
    phase === "Failed" ||
    phase === "Pending" ||
    pod.metadata.deletionTimestamp !== undefined
  );
}

function budgetOf({ store }: WriteContext, { metadata }: KubeObject): KubeObject | undefined {
  const budgets = store
    .list(BUDGETS)
    .filter((budget) => budget.metadata.namespace === metadata.namespace)
    .filter((budget) => labelSelectorTest(at(budget, "spec", "selector"))(metadata.labels ?? {}));
  if (budgets.length <= 1) return budgets[0];
  const message =
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
  throw new StatusError(500, "InternalError", message, { causes: [{ message }] });
}

interface Allowance {
  allowed: number;
  desiredHealthy: number;
  currentHealthy: number;
}

function spendDisruption(context: WriteContext, budget: KubeObject, pod: KubeObject, dryRun: boolean): void {
  const counted = countAllowance(context, budget);
  const stored = at(budget, "status", "disruptionsAllowed");
  if (!isReady(pod)) {
    const always = at(budget, "spec", "unhealthyPodEvictionPolicy") === "AlwaysAllow";
    if (always || (counted.currentHealthy >= counted.desiredHealthy && counted.desiredHealthy > 0)) return;
  }
  const observed = at(budget, "status", "observedGeneration");
  if (typeof observed === "number" && observed < (budget.metadata.generation ?? 0)) throw notObserved(budget);
  const allowed = typeof stored === "number" ? stored : counted.allowed;
  if (allowed <= 0) throw refusal(budget, counted);
  if (dryRun || typeof stored !== "number") return;
  const status = { ...(budget.status as Tree), disruptionsAllowed: stored - 1 };
  context.store.put(BUDGETS, { ...budget, status });
}

function refusal({ metadata }: KubeObject, { desiredHealthy, currentHealthy }: Allowance): StatusError {
  const counts = `needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`;
  return violation(`The disruption budget ${metadata.name} ${counts}`);
}

// As createTooManyRequestsError in pkg/registry/core/pod/storage/eviction.go.
function notObserved({ metadata }: KubeObject): StatusError {
  return violation(`The disruption budget ${metadata.name} is still being processed by the server.`, {
    retryAfterSeconds: 10,
  });
}

function violation(message: string, details: StatusDetails = {}): StatusError {
  return new StatusError(
    429,
    "TooManyRequests",
    "Cannot evict pod as it would violate the pod's disruption budget.",
    { ...details, causes: [{ reason: "DisruptionBudget", message }] },
  );
}

function countAllowance({ store }: WriteContext, budget: KubeObject): Allowance {
  const selects = labelSelectorTest(at(budget, "spec", "selector"));
  const pods = store
    .list("pods")
    .filter(
      ({ metadata }) => metadata.namespace === budget.metadata.namespace && selects(metadata.labels ?? {}),
    );
  const healthy = pods.filter((pod) => isReady(pod) && !pod.metadata.deletionTimestamp).length;
  const status = at(budget, "status");
  const stored = (field: string) => {
    const value = at(status, field);
    return typeof value === "number" ? value : undefined;
  };
  const desiredHealthy = stored("desiredHealthy") ?? desiredOf(budget, pods.length);
  const currentHealthy = stored("currentHealthy") ?? healthy;
  return { allowed: Math.max(currentHealthy - desiredHealthy, 0), desiredHealthy, currentHealthy };
}

function desiredOf(budget: KubeObject, expected: number): number {
  const most = at(budget, "spec", "maxUnavailable");
  if (most !== undefined) return Math.max(expected - scaled(most, expected), 0);
  return scaled(at(budget, "spec", "minAvailable") ?? 1, expected);
}

// Resolves a number of pods or a percentage, which is rounded up.
function scaled(value: unknown, total: number): number {
  if (typeof value === "number") return value;
  const percent = /^(\d+)%$/.exec(String(value));
  return percent ? Math.ceil((Number(percent[1]) * total) / 100) : Number(value) || 0;
}

function isReady(pod: KubeObject): boolean {
  const conditions = at(pod, "status", "conditions");
  return (
    Array.isArray(conditions) && conditions.some(({ type, status }) => type === "Ready" && status === "True")
  );
}

function markDisrupted({ store, clock }: WriteContext, pod: KubeObject): void {
  const stored = at(pod, "status", "conditions");
  const before = Array.isArray(stored) ? stored : [];
  const known = before.find(({ type, status }) => type === "DisruptionTarget" && status === "True");
  if (known?.reason === EVICTION_API) return;
  const others = before.filter(({ type }) => type !== "DisruptionTarget");
  const condition = {
    type: "DisruptionTarget",
    status: "True",
    reason: EVICTION_API,
    message: "Eviction API: evicting",
    lastTransitionTime: known?.lastTransitionTime ?? timestamp(clock.now()),
  };
  store.put("pods", {
    ...pod,
    status: { ...(isTree(pod.status) ? pod.status : {}), conditions: [...others, condition] },
  });
}
