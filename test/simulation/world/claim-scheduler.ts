import type { KubeObject } from "@nodekeeper/core/kube";
import { allocatable } from "../../../packages/agent/src/devices/testing/allocatable.ts";
import {
  claimFor,
  claimName,
  type HeldDevice,
  heldDevices,
} from "../../../packages/testing/src/kubelet/claims.ts";
import { isFinished, type JsonPod } from "../../../packages/testing/src/kubelet/pods.ts";
import { type ApiServer, NODE } from "./api-server.ts";

export const CLAIMS = "resourceclaims.resource.k8s.io";
export const SLICES = "resourceslices.resource.k8s.io";

/** Beginning of the names of claims that `BindingScheduler` deals with, and of their devices. */
export const TO_BIND = "fabric";

/** Number of devices by the name of the template. Those of one claim may belong to several drivers. */
const claimTemplates = { "one-gpu": 1, "two-gpus": 2 };

export interface SliceSpec {
  driver: string;
  nodeName: string;
  pool: { name: string; generation: number };
  devices?: { name: string; allowMultipleAllocations?: boolean }[];
}

/** Most claims that have a device at once which may be allocated several times. */
const MOST_SHARES = 3;

/** Creates, allocates and deletes the claims of the node's pods, as kube-scheduler and the claim controller do. */
export class ClaimScheduler {
  readonly #api: ApiServer;
  readonly #staleMs: number;
  // Virtual milliseconds at which claims were allocated, by UID.
  readonly #allocatedAt = new Map<string, number>();
  /** Whether the kubelet may still have a claim prepared, and keeps its pod's object for that. */
  readonly #isHeld: (uid: string) => boolean;
  // Virtual milliseconds at which several claims last had the same device, or the same share of one.
  readonly #sharedAt = new Map<string, number>();
  // UIDs of pods that were deleted without waiting for the kubelet.
  readonly #forced = new Set<string>();
  #shares = 0;
  // Revision of the store at which nothing was left to do.
  #doneAt = -1;

  /** @param staleMs how late the scheduler sees allocations, its own and those of another replica, in milliseconds */
  constructor(api: ApiServer, staleMs: number, isHeld: (uid: string) => boolean) {
    this.#api = api;
    this.#staleMs = staleMs;
    this.#isHeld = isHeld;
  }

  /** Pods of the node that are to run, with their claims. */
  get pods(): { pod: JsonPod; claims: KubeObject[] }[] {
    const claims = this.claims;
    return this.#pods
      .filter((pod) => !isFinished(pod) && pod.metadata.deletionTimestamp === undefined)
      .map((pod) => ({ pod, claims: claims.filter((claim) => isReservedFor(claim, pod)) }));
  }

  /** Returns whether, within the last `ms`, several claims had what only one of them can have. */
  wasSharedWithin(held: HeldDevice, ms: number): boolean {
    return (this.#sharedAt.get(partOf(held)) ?? Number.NEGATIVE_INFINITY) >= this.#now - ms;
  }

  /** Returns when it allocated a claim, in virtual milliseconds; 0 if it did not. */
  allocatedAt(uid: string): number {
    return this.#allocatedAt.get(uid) ?? 0;
  }

  get claims(): KubeObject[] {
    return this.#api.store.list(CLAIMS);
  }

  /** Deletes a pod at once, as `kubectl delete --force` does. Its claims are free although its containers may run. */
  forceDelete({ metadata: { name = "", namespace = "", uid = "" } }: JsonPod): void {
    this.#forced.add(uid);
    this.#api.store.delete("pods", name, namespace);
  }

  /** Returns whether a claim must remain because the kubelet may still have it prepared. */
  isHeld({ metadata: { uid = "", ownerReferences = [] } }: KubeObject): boolean {
    return this.#isHeld(uid) && !ownerReferences.some((owner) => this.#forced.has(owner.uid));
  }

  /** Does what is to be done now. */
  step(): void {
    const { store, process } = this.#api;
    if (store.revision === this.#doneAt) return;
    process.run(() => {
      const { revision } = store;
      const isWaiting = this.#deleteEnded();
      for (const { pod } of this.pods) this.#allocate(pod);
      if (this.#staleMs > 0) this.#noteShared();
      else if (!isWaiting && store.revision === revision) this.#doneAt = revision;
    });
  }

  #noteShared(): void {
    const holders = Map.groupBy(this.claims.flatMap(heldDevices), partOf);
    for (const [part, { length }] of holders) if (length > 1) this.#sharedAt.set(part, this.#now);
  }

  /** Returns whether a claim remains until the kubelet no longer holds it. */
  #deleteEnded(): boolean {
    const pods = this.#pods;
    let isWaiting = false;
    for (const claim of this.claims) {
      if (claim.metadata.name?.startsWith(TO_BIND) || pods.some((pod) => isReservedFor(claim, pod))) continue;
      const { name = "", namespace = "" } = claim.metadata;
      if (this.isHeld(claim)) isWaiting = true;
      else this.#api.store.delete(CLAIMS, name, namespace);
    }
    return isWaiting;
  }

  #allocate(pod: JsonPod): void {
    const { store } = this.#api;
    for (const { name, resourceClaimTemplateName: template } of pod.spec?.resourceClaims ?? []) {
      if (store.get(CLAIMS, claimName(pod, name), pod.metadata.namespace)) continue;
      const count = claimTemplates[template as keyof typeof claimTemplates];
      if (count === undefined) continue;
      const free = this.free("gpu");
      if (free.length < count) continue;
      const { metadata } = store.put(claimFor(pod, name, free.slice(0, count)));
      this.#allocatedAt.set(metadata.uid ?? "", this.#now);
    }
  }

  /** Returns devices, or shares of them, that no claim has. @param start beginning of the devices' names */
  free(start: string): HeldDevice[] {
    const seen = this.claims.filter(
      ({ metadata: { uid = "" } }) =>
        this.#now - (this.#allocatedAt.get(uid) ?? Number.NEGATIVE_INFINITY) >= this.#staleMs,
    );
    const held = Map.groupBy(seen.flatMap(heldDevices), ({ device }) => device);
    const slices = this.#api.store.list(SLICES);
    const newestFirst = slices
      .map(({ spec }) => spec as SliceSpec)
      .filter(({ nodeName }) => nodeName === NODE)
      .sort((a, b) => b.pool.generation - a.pool.generation);
    return allocatable(slices, NODE)
      .devices.filter((device) => device.startsWith(`${start}-`))
      .flatMap((device) => {
        const isIt = ({ name }: { name: string }) => name === device;
        const { driver, pool, devices } = newestFirst.find((spec) => spec.devices?.some(isIt))!;
        const isShared = devices?.find(isIt)?.allowMultipleAllocations ?? false;
        const { length: claims } = held.get(device) ?? [];
        if (claims >= (isShared ? MOST_SHARES : 1)) return [];
        return [{ driver, pool: pool.name, device, ...(isShared ? { shareID: this.#newShare() } : {}) }];
      });
  }

  #newShare(): string {
    return `00000000-0000-4000-8000-${String(++this.#shares).padStart(12, "0")}`;
  }

  get #now(): number {
    return this.#api.process.scheduler.now;
  }

  get #pods(): JsonPod[] {
    return this.#api.store
      .list("pods")
      .filter(({ spec }) => (spec as { nodeName?: string }).nodeName === NODE);
  }
}

// What only one claim can have.
function partOf({ device, shareID = "" }: HeldDevice): string {
  return `${device}/${shareID}`;
}

/** Returns whether a pod may use a claim. */
export function isReservedFor({ status }: KubeObject, { metadata }: JsonPod): boolean {
  const { reservedFor = [] } = (status ?? {}) as { reservedFor?: { uid: string }[] };
  return reservedFor.some(({ uid }) => uid === metadata.uid);
}
