import {
  type ApiResource,
  type KubeObject,
  recordOf,
  recordsOf,
  textOf,
  type Watcher,
  type WatchTarget,
} from "@nodekeeper/core/kube";
import { childScope, type Logger, type ScopedSignal } from "@nodekeeper/core/lib";
import { type Allocation, allocationOf, type ClaimPod } from "./allocation.ts";
import { type ClaimReference, parseClaim } from "./claim-reader.ts";

/** A claim that has devices with binding conditions of one driver, and whose pod waits to be bound to this node. */
export interface ClaimToBind extends ClaimReference, Omit<Allocation, "pods"> {
  /** The pods that wait. */
  pods: readonly ClaimPod[];
  /** Wall milliseconds; 0 if it is not known. */
  allocatedAt: number;
}

export interface ClaimsToBindOptions {
  nodeName: string;
  watch: (target: WatchTarget) => Pick<Watcher, "run" | "lastError">;
  log: Logger;
}

interface WaitingPod {
  namespace: string;
  pod: ClaimPod;
  /** Names of its claims that exist. */
  claims: string[];
}

interface FollowedClaim {
  scope: ScopedSignal;
  /** Undefined if it does not exist. */
  claim: KubeObject | undefined;
  isRead: boolean;
}

// Every API server serves it.
const pods: ApiResource = {
  group: "",
  version: "v1",
  kind: "Pod",
  plural: "pods",
  namespaced: true,
  verbs: ["list", "watch"],
  subresources: [],
};

// Binding conditions are as old as this version: Kubernetes 1.34.
const resourceClaims: ApiResource = {
  ...pods,
  group: "resource.k8s.io",
  kind: "ResourceClaim",
  plural: "resourceclaims",
};

const MOST_CLAIMS = 500;

/**
 * The claims of pods that the scheduler has nominated this node for: from before it allocates their claims until it binds
 * them. Watches these pods, and each of their claims by its name.
 */
export class ClaimsToBind {
  readonly #options: ClaimsToBindOptions;
  readonly #listeners: (() => void)[] = [];
  readonly #pods = new Map<string, WaitingPod>();
  /** By namespace and name. */
  readonly #claims = new Map<string, FollowedClaim>();
  #watcher: Pick<Watcher, "run" | "lastError"> | undefined;
  #isSynced = false;

  constructor(options: ClaimsToBindOptions) {
    this.#options = options;
  }

  /** Calls `listener` after each change of a pod or claim. */
  subscribe(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Whether all pods that wait have been read, and their claims. Otherwise some may be missing. */
  get isComplete(): boolean {
    return this.#isSynced && [...this.#claims.values()].every(({ isRead }) => isRead);
  }

  /** Why pods are not watched. Undefined if they are. */
  get lastError(): unknown {
    return this.#watcher?.lastError;
  }

  /** Returns the claims with binding conditions for a driver. */
  of(driver: string): ClaimToBind[] {
    return [...this.#claims.values()].flatMap(({ claim }) => (claim ? this.#toBind(claim, driver) : []));
  }

  /** Watches until the signal aborts. Nothing is known afterwards. */
  async run(signal: AbortSignal): Promise<void> {
    const { watch, nodeName } = this.#options;
    using scope = childScope(signal);
    this.#watcher = watch({
      resource: pods,
      // The API server has an index of the first field: a bound pod of any node is not compared.
      fieldSelector: `spec.nodeName=,status.nominatedNodeName=${nodeName}`,
      handler: {
        onReplace: (listed) => {
          this.#pods.clear();
          for (const pod of listed) this.#take(pod);
          this.#isSynced = true;
          this.#follow(scope.signal);
        },
        onUpsert: (pod) => {
          this.#take(pod);
          this.#follow(scope.signal);
        },
        onDelete: ({ metadata }) => {
          this.#pods.delete(metadata.uid ?? "");
          this.#follow(scope.signal);
        },
      },
    });
    try {
      await this.#watcher.run(scope.signal);
    } finally {
      scope.abort();
      this.#watcher = undefined;
      this.#isSynced = false;
      this.#pods.clear();
      this.#claims.clear();
    }
  }

  #take({ metadata, spec, status }: KubeObject): void {
    const { name = "", namespace = "", uid = "" } = metadata;
    const { serviceAccountName, resourceClaims: wanted } = recordOf(spec);
    const { resourceClaimStatuses, extendedResourceClaimStatus: extended } = recordOf(status);
    // Those of the specification have a name or a template; the status has the names of claims made of templates.
    const named = [...recordsOf(wanted), ...recordsOf(resourceClaimStatuses), recordOf(extended)];
    const claims = named.map(({ resourceClaimName }) => textOf(resourceClaimName)).filter(Boolean);
    const serviceAccount = textOf(serviceAccountName);
    const pod = { name, uid, ...(serviceAccount ? { serviceAccount } : {}) };
    this.#pods.set(uid, { namespace, pod, claims });
  }

  // Follows the claims of the pods that wait now, and no others.
  #follow(signal: AbortSignal): void {
    const all = [...this.#pods.values()].flatMap(({ namespace, claims }) =>
      claims.map((name) => [`${namespace}/${name}`, { namespace, name }] as const),
    );
    const wanted = new Map<string, { namespace: string; name: string }>(all);
    for (const [key, { scope }] of this.#claims) {
      if (wanted.has(key)) continue;
      scope.abort();
      scope.release();
      this.#claims.delete(key);
    }
    for (const [key, reference] of wanted) {
      if (this.#claims.has(key)) continue;
      if (this.#claims.size === MOST_CLAIMS) {
        this.#options.log.warn(
          `more than ${MOST_CLAIMS} claims of pods that wait to be bound: the others are not read`,
        );
        break;
      }
      this.#followClaim(key, reference, signal);
    }
    this.#changed();
  }

  #followClaim(key: string, { namespace, name }: Omit<ClaimReference, "uid">, signal: AbortSignal): void {
    const followed: FollowedClaim = { scope: childScope(signal), claim: undefined, isRead: false };
    this.#claims.set(key, followed);
    const set = (claim: KubeObject | undefined) => {
      followed.claim = claim;
      followed.isRead = true;
      if (this.#claims.get(key) === followed) this.#changed();
    };
    const watcher = this.#options.watch({
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
    void watcher.run(followed.scope.signal);
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }

  // The claim that another pod uses already is only waited for once it is reserved for this pod, too.
  #toBind(claim: KubeObject, driver: string): ClaimToBind[] {
    const { allocation } = recordOf(claim.status);
    if (!allocation) return [];
    const { pods: reserved, devices, details } = allocationOf(claim, driver);
    const waiting = reserved.flatMap((pod) => {
      const found = this.#pods.get(pod.uid);
      return found ? [{ ...pod, ...found.pod }] : [];
    });
    const binding = devices.filter(({ bindingConditions }) => bindingConditions);
    if (waiting.length === 0 || binding.length === 0) return [];
    const { name = "", namespace = "", uid = "" } = claim.metadata;
    const allocatedAt = Date.parse(textOf(recordOf(allocation).allocationTimestamp)) || 0;
    return [{ namespace, name, uid, pods: waiting, devices: binding, details, allocatedAt }];
  }
}

/** Identifies an allocation: a claim that is deallocated and allocated again has another one. */
export function allocationKey({ uid, allocatedAt, devices }: ClaimToBind): string {
  return JSON.stringify([
    uid,
    allocatedAt,
    devices.map(({ pool, device, shareId }) => [pool, device, shareId]),
  ]);
}
