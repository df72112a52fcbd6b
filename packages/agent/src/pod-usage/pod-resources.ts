import type { Quantity as TextQuantity } from "@nodekeeper/core/gen/k8s/core/v1/api.ts";
import { isQuantity, parseQuantity } from "@nodekeeper/core/lib";
import type { ObservedPod, PodDetails } from "../eviction/index.ts";

/** Amounts of resources by name, in billionths of their unit. */
export type Amounts = ReadonlyMap<string, bigint>;

/** Where plugins read what a pod requests: the pod itself, or a file, for a pod in a record. */
export interface WholePods {
  of(pod: ObservedPod): PodDetails;
}

/** The details that pods were observed with. */
export const observedDetails: WholePods = { of: ({ details }) => details };

/**
 * What a pod asks for while it runs and while it starts, whichever is more, as Kubernetes counts it: containers and
 * sidecars together; each init container with the sidecars started before it; the overhead; the pod's own requests
 * in place of the sums where it states them.
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
 * The memory that a pod's running containers ask for together, bytes; undefined where one of them asks for none: then
 * there is nothing to measure its use by. Containers, sidecars, overhead; the pod's own request where it states one.
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

/** The amounts of a list; what is no quantity is left out. */
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

/** In whole units, as near as a number gets. */
export function unitsOf(amount: bigint): number {
  return Number(amount) / 1e9;
}

function bytesOf(amount: bigint): number {
  return Math.ceil(unitsOf(amount));
}

function larger(a: bigint | undefined, b: bigint): bigint {
  return a === undefined || b > a ? b : a;
}
