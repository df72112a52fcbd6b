import {
  type ApiResource,
  type KubeObject,
  podResource,
  type Watcher,
  type WatchTarget,
} from "@nodekeeper/core/kube";
import { childScope, type Logger, type ScopedSignal } from "@nodekeeper/core/lib";
import { type ClaimPod, hasDevices } from "./allocation.ts";
import { type ClaimReference, parseClaim } from "./claim-reader.ts";
import type { ClaimRecords } from "./claim-records.ts";
import { bindingDrivers, type ClaimToBind, claimToBind, reservedPods } from "./claim-to-bind.ts";
import { type WaitingPod, waitingPod } from "./waiting-pod.ts";

export interface ClaimsToBindOptions {
  nodeName: string;
  records: Pick<ClaimRecords, "get" | "subscribe">;
  /** Returns claims that may have waited before, and are not prepared. */
  unprepared: () => readonly ClaimReference[];
  /** Whether allocations are reported to a driver. Claims of other drivers are not watched. */
  isServed: (driver: string) => boolean;
  watch: (target: WatchTarget) => Pick<Watcher, "run" | "lastError">;
  log: Logger;
}

interface FollowedClaim {
  scope: ScopedSignal;
  /** Why it can't be read. Undefined if it was read or the read is in progress. */
  lastError: () => unknown;
  /** Undefined if it does not exist. */
  claim: KubeObject | undefined;
  isRead: boolean;
  /** UID of the claim from when a pod waits for it until all its drivers have prepared it, or it is deallocated. */
  heldUid: string | undefined;
  /** Drivers that have prepared it since. */
  preparedBy: Set<string>;
  /** The pods that have waited and that it is still reserved for, by UID. */
  pods: Map<string, ClaimPod>;
}

// Binding conditions are as old as this version: Kubernetes 1.34.
const resourceClaims: ApiResource = {
  ...podResource,
  group: "resource.k8s.io",
  kind: "ResourceClaim",
  plural: "resourceclaims",
};

// Each claim takes one of the API client's 32 watches; the agent's other watches must not wait for them.
const MOST_CLAIMS = 12;

/**
 * The allocated claims that a driver must know before they are prepared: from when the scheduler has reserved
 * a claim for a pod that it nominated this node for, until the driver has prepared it or it is deallocated.
 * Watches these pods, which are not bound yet, and each claim by its name.
 */
export class ClaimsToBind {
  readonly #options: ClaimsToBindOptions;
  readonly #listeners: (() => void)[] = [];
  readonly #pods = new Map<string, WaitingPod>();
  /** By namespace and name. */
  readonly #claims = new Map<string, FollowedClaim>();
  #watcher: Pick<Watcher, "run" | "lastError"> | undefined;
  #signal: AbortSignal | undefined;
  #isSynced = false;
  #isFull = false;

  constructor(options: ClaimsToBindOptions) {
    this.#options = options;
    options.records.subscribe(() => this.#follow());
  }

  /** Calls `listener` after each change of a pod or claim. */
  subscribe(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Whether all pods that wait have been read, and their claims. Otherwise some may be missing. */
  get isComplete(): boolean {
    return this.#isSynced && [...this.#claims.values()].every(({ isRead }) => isRead);
  }

  /** Why pods or a claim can't be read. Undefined if they can. */
  get lastError(): unknown {
    const unread = [...this.#claims.values()].filter(({ isRead }) => !isRead);
    return this.#watcher?.lastError ?? unread.map(({ lastError }) => lastError()).find((error) => error);
  }

  /** Returns the claims of a driver. */
  of(driver: string): ClaimToBind[] {
    return [...this.#claims.values()].flatMap(({ claim, heldUid, preparedBy, pods }) =>
      !claim || claim.metadata.uid !== heldUid || preparedBy.has(driver)
        ? []
        : (claimToBind(claim, driver, pods, this.#options.nodeName) ?? []),
    );
  }

  /** Watches until the signal aborts. Nothing is known afterwards. */
  async run(signal: AbortSignal): Promise<void> {
    const { watch, nodeName } = this.#options;
    using scope = childScope(signal);
    this.#signal = scope.signal;
    this.#watcher = watch({
      resource: podResource,
      // The API server has an index of the first field: a bound pod of any node is not compared.
      fieldSelector: `spec.nodeName=,status.nominatedNodeName=${nodeName}`,
      handler: {
        onReplace: (listed) => {
          this.#pods.clear();
          for (const pod of listed) this.#pods.set(pod.metadata.uid ?? "", waitingPod(pod));
          this.#isSynced = true;
          this.#follow();
        },
        onUpsert: (pod) => {
          this.#pods.set(pod.metadata.uid ?? "", waitingPod(pod));
          this.#follow();
        },
        onDelete: ({ metadata }) => {
          this.#pods.delete(metadata.uid ?? "");
          this.#follow();
        },
      },
    });
    this.#followUnprepared();
    try {
      await this.#watcher.run(scope.signal);
    } finally {
      scope.abort();
      this.#watcher = undefined;
      this.#signal = undefined;
      this.#isSynced = false;
      this.#pods.clear();
      this.#claims.clear();
    }
  }

  /**
   * Must be called when the result of `isServed` has changed for a driver. Starts or stops following the driver's
   * claims.
   */
  servedChanged(): void {
    this.#followUnprepared();
    this.#follow();
  }

  #followUnprepared(): void {
    if (!this.#signal) return;
    for (const claim of this.#options.unprepared()) this.#followClaim(claim, claim.uid);
  }

  // Follows the claims of the pods that wait now, and those that are held.
  #follow(): void {
    if (!this.#signal) return;
    const wanted = new Map<string, { namespace: string; name: string }>();
    for (const { namespace, claims } of this.#pods.values())
      for (const name of claims) wanted.set(`${namespace}/${name}`, { namespace, name });
    for (const [key, followed] of this.#claims) {
      this.#hold(followed);
      if (wanted.has(key) || !followed.isRead || followed.heldUid !== undefined) continue;
      followed.scope.abort();
      followed.scope.release();
      this.#claims.delete(key);
    }
    for (const reference of wanted.values()) this.#followClaim(reference);
    for (const listener of this.#listeners) listener();
  }

  #followClaim({ namespace, name }: Omit<ClaimReference, "uid">, heldUid?: string): void {
    const { watch, log } = this.#options;
    const key = `${namespace}/${name}`;
    if (this.#claims.has(key)) return;
    const isFull = this.#claims.size >= MOST_CLAIMS;
    if (isFull && !this.#isFull)
      log.warn(
        { claim: key, limit: MOST_CLAIMS },
        "too many claims are waiting to be bound, not watching claim",
      );
    this.#isFull = isFull;
    if (isFull) return;
    const scope = childScope(this.#signal);
    const followed: FollowedClaim = {
      scope,
      lastError: () => watcher.lastError,
      claim: undefined,
      isRead: false,
      heldUid,
      preparedBy: new Set(),
      pods: new Map(),
    };
    this.#claims.set(key, followed);
    const set = (claim: KubeObject | undefined) => {
      followed.claim = claim;
      followed.isRead = true;
      this.#follow();
    };
    const watcher = watch({
      resource: resourceClaims,
      namespace,
      fieldSelector: `metadata.name=${name}`,
      parse: parseClaim,
      handler: {
        onReplace: ([claim]) => set(claim),
        onUpsert: set,
        onDelete: () => set(undefined),
      },
    });
    // Never rejects.
    void watcher.run(scope.signal);
  }

  #hold(followed: FollowedClaim): void {
    const { claim, isRead, preparedBy, pods } = followed;
    if (!isRead) return;
    const { nodeName, records, isServed } = this.#options;
    const drivers = bindingDrivers(claim, nodeName).filter(isServed);
    const uid = claim?.metadata.uid ?? "";
    const reserved = new Set(reservedPods(claim));
    // A shared claim outlives the pods that have waited for it.
    for (const pod of pods.keys()) if (!reserved.has(pod)) pods.delete(pod);
    // A claim that another pod already uses is awaited once it is also reserved for a waiting pod.
    const awaited = [...reserved].filter((pod) => this.#pods.has(pod));
    if (drivers.length > 0 && awaited.length > 0) {
      followed.heldUid = uid;
      preparedBy.clear();
      for (const pod of awaited) pods.set(pod, this.#pods.get(pod)!.pod);
      return;
    }
    for (const driver of drivers) {
      const record = records.get(driver, uid);
      const toBind = claim && claimToBind(claim, driver, pods, nodeName);
      if (record?.state === "prepared" && hasDevices(record.devices, toBind?.devices ?? []))
        preparedBy.add(driver);
    }
    if (followed.heldUid === uid && drivers.some((driver) => !preparedBy.has(driver))) return;
    followed.heldUid = undefined;
  }
}
