import type { KubeObject } from "@nodekeeper/core/kube";
import type { HeldDevice } from "../../../packages/testing/src/kubelet/claims.ts";
import type { JsonPod } from "../../../packages/testing/src/kubelet/pods.ts";
import type { Machine } from "../machine/machine.ts";
import { type ApiServer, NODE } from "./api-server.ts";
import { ATTACHED, FAILED, isBinding } from "./binding-driver.ts";
import { CLAIMS, type ClaimScheduler, isReservedFor, TO_BIND } from "./claim-scheduler.ts";
import type { BindingRates } from "./faults.ts";
import type { History } from "./history.ts";
import { elsewhere, isElsewhere, onNode, unsorted } from "./odd-allocations.ts";

/** An allocation of devices with binding conditions. */
export interface BoundAllocation {
  uid: string;
  /** As in the claim. */
  allocatedAt: string;
  /** Virtual milliseconds at which it began and ended. */
  at: number;
  endedAt: number;
  /** Virtual milliseconds at which a pod last began to wait for it, or was bound. */
  changedAt: number;
}

interface ClaimStatus {
  allocation?: { allocationTimestamp: string; devices: { results: HeldDevice[] } };
  reservedFor?: { resource: string; name: string; uid: string }[];
  devices?: DeviceEntry[];
}

/** An entry of `status.devices`. */
export interface DeviceEntry extends HeldDevice {
  conditions?: { type: string; status: string; message: string }[];
  data?: { checked?: number };
}

/** A pod that is not bound, and how far it has come. */
interface Attempt {
  /** Virtual milliseconds before which nothing is done, and at which it is given up. */
  notBefore: number;
  until: number;
}

const NAMESPACE = "default";
const SHARED_CLAIM = "fabric-shared";
const OWN = TO_BIND;
const SHARED = "pooled";
const workloads = [OWN, SHARED] as const;
const BACKOFF_MS = [1_000, 3_000] as const;

/**
 * The scheduler, controllers and operators of pods whose devices have binding conditions. Each pod of one workload has a
 * claim of its own, and those of the other share one, which outlives them.
 */
export class BindingScheduler {
  /** All allocations, oldest first. */
  readonly allocations: BoundAllocation[] = [];
  /** Whether pods wait as long as it takes. */
  isPatient = false;
  readonly #machine: Machine;
  readonly #history: History;
  readonly #api: ApiServer;
  readonly #claims: ClaimScheduler;
  readonly #replicas: number;
  readonly #rates: BindingRates;
  readonly #attempts = new Map<string, Attempt>();
  #made = 0;

  constructor(
    machine: Machine,
    history: History,
    {
      api,
      claims,
      replicas,
      rates,
    }: { api: ApiServer; claims: ClaimScheduler; replicas: number; rates: BindingRates },
  ) {
    this.#rates = rates;
    this.#machine = machine;
    this.#history = history;
    this.#api = api;
    this.#claims = claims;
    this.#replicas = replicas;
  }

  /** Does what is to be done now. */
  step(): void {
    this.#api.process.run(() => {
      this.#endAllocations();
      for (const workload of workloads) this.#keep(workload);
      for (const pod of this.pods) if (!nodeOf(pod)) this.#schedule(pod);
      this.#endAllocations();
    });
  }

  /** Pods of both workloads that are to run, bound or not. */
  get pods(): JsonPod[] {
    return this.#api.store
      .list("pods", NAMESPACE)
      .filter(
        ({ metadata }) =>
          workloads.some((name) => metadata.name?.startsWith(`${name}-`)) &&
          metadata.deletionTimestamp === undefined,
      );
  }

  /** Allocated claims with the allocation that they have. */
  get allocated(): { claim: KubeObject; allocation: BoundAllocation }[] {
    return this.allocations
      .filter(({ endedAt }) => !Number.isFinite(endedAt))
      .flatMap((allocation) => {
        const claim = this.#api.store
          .list(CLAIMS, NAMESPACE)
          .find(({ metadata }) => metadata.uid === allocation.uid);
        return claim ? [{ claim, allocation }] : [];
      });
  }

  /**
   * Deallocates a claim that only waiting pods use, and allocates it again for them. Returns whether it was allocated
   * again. Not within the second of the last allocation, because the timestamps would be equal.
   */
  reallocate(name: string): boolean {
    return this.#api.process.run(() => {
      const claim = this.#api.store.get(CLAIMS, name, NAMESPACE);
      const current = claim && statusOf(claim).allocation?.allocationTimestamp;
      if (!claim || current === undefined || current === this.#timestamp) return false;
      const pods = this.pods.filter((pod) => isReservedFor(claim, pod));
      if (pods.length === 0 || pods.some(nodeOf) || pods.length < statusOf(claim).reservedFor!.length)
        return false;
      this.#deallocate(claim);
      this.#endAllocations();
      // The device may be gone.
      if (this.#free().length === 0) return false;
      for (const pod of pods) this.#reserve(this.#api.store.get(CLAIMS, name, NAMESPACE)!, pod);
      return true;
    });
  }

  get #timestamp(): string {
    const { wallAtStart, scheduler } = this.#machine;
    return new Date(wallAtStart + Math.floor(scheduler.now)).toISOString().replace(/\.\d+Z$/, "Z");
  }

  get #now(): number {
    return this.#machine.scheduler.now;
  }

  #keep(workload: (typeof workloads)[number]): void {
    const { store } = this.#api;
    const isShared = workload === SHARED;
    if (isShared && !store.get(CLAIMS, SHARED_CLAIM, NAMESPACE)) store.put(claimNamed(SHARED_CLAIM));
    let missing =
      this.#replicas - this.pods.filter(({ metadata }) => isOfWorkload(metadata, workload)).length;
    for (; missing > 0; missing--) {
      const name = `${workload}-${++this.#made}`;
      const claimName = isShared ? SHARED_CLAIM : `${name}-gpu`;
      const { metadata } = store.put(podNamed(name, claimName, isShared));
      if (!isShared) store.put(claimNamed(claimName, { name, uid: metadata.uid! }));
    }
  }

  #schedule(pod: JsonPod): void {
    const { metadata, spec } = pod;
    const uid = metadata.uid!;
    const attempt = this.#attempts.get(uid) ?? { notBefore: 0, until: 0 };
    this.#attempts.set(uid, attempt);
    if (this.#now < attempt.notBefore) return;
    const { resourceClaimStatuses: [made] = [], nominatedNodeName } = (pod.status ?? {}) as PodStatus;
    const [wanted] = (spec?.resourceClaims ?? []) as { resourceClaimName?: string }[];
    const name = wanted?.resourceClaimName ?? made?.resourceClaimName ?? "";
    const claim = this.#api.store.get(CLAIMS, name, NAMESPACE);
    if (!claim) return;
    const status = statusOf(claim);
    if (!status.allocation && this.#free().length === 0) return;
    if (nominatedNodeName !== NODE) {
      this.#api.store.put({ ...pod, status: { ...pod.status, nominatedNodeName: NODE } });
      attempt.notBefore = this.#now + this.#machine.between(0, 600);
      return;
    }
    if (!isReservedFor(claim, pod)) {
      this.#reserve(claim, pod);
      attempt.until = this.#now + this.#machine.between(4_000, 15_000);
      return;
    }
    this.#await(claim, pod, attempt);
  }

  // Allocates the claim if it is not allocated.
  #reserve(claim: KubeObject, { metadata: { name = "", uid = "" } }: JsonPod): void {
    const status = statusOf(claim);
    const reservedFor = [...(status.reservedFor ?? []), { resource: "pods", name, uid }];
    const allocation =
      status.allocation ??
      (this.#happens(this.#rates.otherNodes) ? this.#elsewhere(claim) : this.#allocation(claim));
    this.#history.note("kube-scheduler", `reserves ${claim.metadata.name} for ${name}`);
    this.#api.store.put({ ...claim, status: { ...status, allocation, reservedFor } });
    this.#changed(claim);
  }

  // Draws nothing if there is none.
  #happens(rate: number): boolean {
    return rate > 0 && this.#machine.chance(rate);
  }

  #elsewhere({ metadata: { name } }: KubeObject) {
    this.#history.note("kube-scheduler", `allocates a device of another node to ${name}`);
    return elsewhere(this.#free()[0]!.driver, this.#timestamp);
  }

  #allocation(claim: KubeObject) {
    const { uid = "", name } = claim.metadata;
    const allocationTimestamp = this.#timestamp;
    const free = this.#free();
    const first = free[0]!;
    const plain = this.#claims
      .free(OWN)
      .find(({ device, pool }) => !isBinding(device) && pool === first.pool);
    const results = [
      {
        request: "gpu",
        ...first,
        bindingConditions: [ATTACHED],
        bindingFailureConditions: [FAILED],
      },
      ...(plain && this.#machine.chance(0.5) ? [{ request: "plain", ...plain }] : []),
    ];
    this.allocations.push({
      uid,
      allocatedAt: allocationTimestamp,
      at: this.#now,
      endedAt: Number.POSITIVE_INFINITY,
      changedAt: this.#now,
    });
    this.#history.note(
      "kube-scheduler",
      `allocates ${results.map(({ device }) => device)} to ${name} (${uid}) at ${allocationTimestamp}`,
    );
    const config = this.#happens(this.#rates.unsortedParameters) ? { config: unsorted(first.driver) } : {};
    return { allocationTimestamp, devices: { results, ...config }, nodeSelector: onNode(NODE) };
  }

  #free(): HeldDevice[] {
    return this.#claims.free(OWN).filter(({ device }) => isBinding(device));
  }

  // Binds the pod if all conditions are met, and gives its devices up if one has failed, or it takes too long.
  #await(claim: KubeObject, pod: JsonPod, attempt: Attempt): void {
    const { allocation, devices = [] } = statusOf(claim);
    const isTrue = (wanted: string) => (device: HeldDevice) =>
      devices
        .find((entry) => sameDevice(entry, device))
        ?.conditions?.some(({ type, status }) => type === wanted && status === "True") ?? false;
    const bound = allocation?.devices.results.filter(({ device }) => isBinding(device)) ?? [];
    if (isElsewhere(claim)) {
      if (this.#now >= attempt.until) this.#giveUp(claim, pod, attempt, "is one of another node");
    } else if (bound.some(isTrue(FAILED))) this.#giveUp(claim, pod, attempt, "has failed");
    else if (bound.every(isTrue(ATTACHED))) {
      this.#bind(pod);
      this.#changed(claim);
    } else if (this.#now >= attempt.until && !this.isPatient) this.#giveUp(claim, pod, attempt, "is late");
  }

  #changed({ metadata }: KubeObject): void {
    const current = this.allocations.findLast(({ uid }) => uid === metadata.uid);
    if (current) current.changedAt = this.#now;
  }

  #bind(pod: JsonPod): void {
    const { nominatedNodeName: _, ...status } = (pod.status ?? {}) as PodStatus;
    this.#history.note("kube-scheduler", `binds ${pod.metadata.name}`);
    this.#api.store.put({ ...pod, spec: { ...pod.spec, nodeName: NODE }, status });
    this.#api.pods.look();
  }

  #giveUp(claim: KubeObject, { metadata: { name, uid } }: JsonPod, attempt: Attempt, why: string): void {
    const status = statusOf(claim);
    const others = (status.reservedFor ?? []).filter((each) => each.uid !== uid);
    this.#history.note("kube-scheduler", `gives ${claim.metadata.name} up for ${name}: an attachment ${why}`);
    attempt.notBefore = this.#now + this.#machine.between(...BACKOFF_MS);
    if (others.length === 0) this.#deallocate(claim);
    else this.#api.store.put({ ...claim, status: { ...status, reservedFor: others } });
  }

  // Fields of the status of devices have no owner afterwards.
  #deallocate(claim: KubeObject): void {
    const { managedFields = [], ...metadata } = claim.metadata;
    const others = managedFields.filter(({ subresource }) => subresource !== "status");
    this.#history.note("kube-scheduler", `deallocates ${metadata.name}`);
    this.#api.store.put({ ...claim, metadata: { ...metadata, managedFields: others }, status: {} });
  }

  // Claims that no pod has any more are deallocated, and allocations end with their claims.
  #endAllocations(): void {
    const { store } = this.#api;
    const shared = store.get(CLAIMS, SHARED_CLAIM, NAMESPACE);
    if (shared) this.#release(shared);
    const uids = new Map(store.list(CLAIMS, NAMESPACE).map((claim) => [claim.metadata.uid, claim]));
    for (const allocation of this.allocations) {
      if (Number.isFinite(allocation.endedAt)) continue;
      const claim = uids.get(allocation.uid);
      const current = claim && statusOf(claim).allocation?.allocationTimestamp;
      if (current !== allocation.allocatedAt) allocation.endedAt = this.#now;
    }
  }

  #release(claim: KubeObject): void {
    const status = statusOf(claim);
    const { reservedFor = [], allocation } = status;
    const pods = new Set(this.#api.store.list("pods", NAMESPACE).map(({ metadata }) => metadata.uid));
    const kept = reservedFor.filter(({ uid }) => pods.has(uid));
    if (kept.length === 0 && allocation && !this.#claims.isHeld(claim)) this.#deallocate(claim);
    else if (kept.length > 0 && kept.length < reservedFor.length)
      this.#api.store.put({ ...claim, status: { ...status, reservedFor: kept } });
  }
}

interface PodStatus {
  nominatedNodeName?: string;
  resourceClaimStatuses?: { name: string; resourceClaimName: string }[];
}

/** Returns the status of a claim. */
export function statusOf({ status }: KubeObject): ClaimStatus {
  return (status ?? {}) as ClaimStatus;
}

/** Returns the node that a pod is bound to. Undefined if it is not. */
export function nodeOf({ spec }: JsonPod): string | undefined {
  return (spec as { nodeName?: string } | undefined)?.nodeName;
}

export function sameDevice(a: HeldDevice, b: HeldDevice): boolean {
  return a.driver === b.driver && a.pool === b.pool && a.device === b.device;
}

function isOfWorkload({ name = "" }: KubeObject["metadata"], workload: string): boolean {
  return name.startsWith(`${workload}-`);
}

function claimNamed(name: string, owner?: { name: string; uid: string }): KubeObject {
  const ownerReferences = owner && [{ apiVersion: "v1", kind: "Pod", controller: true, ...owner }];
  return {
    apiVersion: "resource.k8s.io/v1",
    kind: "ResourceClaim",
    metadata: { name, namespace: NAMESPACE, ...(ownerReferences && { ownerReferences }) },
    spec: { devices: { requests: [{ name: "gpu", exactly: { deviceClassName: OWN, count: 1 } }] } },
  };
}

function podNamed(name: string, resourceClaimName: string, isShared: boolean): KubeObject {
  const [owner] = name.split("-");
  const ownerReferences = [
    { apiVersion: "apps/v1", kind: "ReplicaSet", name: owner!, uid: `workload-${owner}`, controller: true },
  ];
  const claim = isShared ? { resourceClaimName } : { resourceClaimTemplateName: OWN };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: NAMESPACE, ownerReferences },
    spec: {
      containers: [{ name: "app", image: "app" }],
      terminationGracePeriodSeconds: 1,
      serviceAccountName: "workload",
      resourceClaims: [{ name: "gpu", ...claim }],
    },
    status: isShared ? {} : { resourceClaimStatuses: [{ name: "gpu", resourceClaimName }] },
  };
}
