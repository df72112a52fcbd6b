import type { Quantity as TextQuantity } from "@nodekeeper/core/gen/k8s/core/v1/api.ts";
import { isQuantity, parseQuantity } from "@nodekeeper/core/lib";
import type { PodDetails } from "../eviction/index.ts";

/** Amounts of resources by name, in billionths of their unit. */
export type Amounts = ReadonlyMap<string, bigint>;

/**
 * Returns the requests of a pod as Kubernetes computes them: the larger of those while it runs and while it starts.
 * Containers and sidecars are added up; each init container is added to the sidecars started before it. Pod-level
 * requests replace the sums. The overhead is added.
 */
export function podRequests({ spec }: PodDetails): Amounts {
  const running = new Map<string, bigint>();
  let sidecars: Amounts = new Map();
  const starting = new Map<string, bigint>();
  for (const container of spec?.initContainers ?? []) {
    const requests = amountsOf(container.resources?.requests);
    const beside = sum(sidecars, requests);
    if (container.restartPolicy === "Always") sidecars = beside;
    for (const [name, amount] of beside) starting.set(name, larger(starting.get(name), amount));
  }
  const containers = (spec?.containers ?? []).map(({ resources }) => amountsOf(resources?.requests));
  for (const [name, amount] of containers.reduce(sum, sidecars)) running.set(name, amount);
  for (const [name, amount] of starting) running.set(name, larger(running.get(name), amount));
  for (const [name, amount] of amountsOf(spec?.resources?.requests)) running.set(name, amount);
  return sum(running, amountsOf(spec?.overhead));
}

/**
 * Returns the memory request of a pod's containers and sidecars, plus overhead, bytes; a pod-level request replaces the
 * sum. Undefined if one of them has no request, because its usage can't be compared with anything.
 */
export function memoryRequest({ spec }: PodDetails): number | undefined {
  const overhead = amountsOf(spec?.overhead).get("memory") ?? 0n;
  const ofPod = amountsOf(spec?.resources?.requests).get("memory") ?? 0n;
  if (ofPod > 0n) return bytesOf(ofPod + overhead);
  const sidecars = (spec?.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always");
  const running = [...(spec?.containers ?? []), ...sidecars];
  let total = overhead;
  for (const { resources } of running) {
    const request = amountsOf(resources?.requests).get("memory") ?? 0n;
    if (request <= 0n) return undefined;
    total += request;
  }
  return running.length === 0 ? undefined : bytesOf(total);
}

/** Returns the amounts of a list. Values that are not quantities are omitted. */
export function amountsOf(list: Readonly<Record<string, TextQuantity | string>> = {}): Amounts {
  const amounts = new Map<string, bigint>();
  for (const [name, quantity] of Object.entries(list)) {
    const text = typeof quantity === "string" ? quantity : quantity.string;
    if (isQuantity(text)) amounts.set(name, parseQuantity(text).nano);
  }
  return amounts;
}

export function sum(a: Amounts, b: Amounts): Amounts {
  const total = new Map(a);
  for (const [name, amount] of b) total.set(name, (total.get(name) ?? 0n) + amount);
  return total;
}

/** Converts to whole units, as precisely as a number can represent. */
export function unitsOf(amount: bigint): number {
  return Number(amount) / 1e9;
}

function bytesOf(amount: bigint): number {
  return Math.ceil(unitsOf(amount));
}

function larger(a: bigint | undefined, b: bigint): bigint {
  return a === undefined || b > a ? b : a;
}
