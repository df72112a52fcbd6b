import type { KubeApiClient, KubeObject } from "@nodekeeper/core/kube";
import type { Machine } from "../machine/machine.ts";
import type { ApiServer } from "./api-server.ts";
import {
  type BindingScheduler,
  type BoundAllocation,
  type DeviceEntry,
  sameDevice,
  statusOf,
} from "./binding-scheduler.ts";
import { CLAIMS } from "./claim-scheduler.ts";
import type { History } from "./history.ts";
import { otherClient } from "./other-client.ts";

/** What the checker has written to a claim. */
interface Written {
  allocation: BoundAllocation;
  entry: DeviceEntry;
}

const CLAIM = {
  group: "resource.k8s.io",
  version: "v1",
  kind: "ResourceClaim",
  plural: "resourceclaims",
  namespaced: true,
};

/** Another client that writes to the status of allocated devices: data of its own, also beside the driver's conditions. */
export class ClaimChecker {
  readonly #machine: Machine;
  readonly #history: History;
  readonly #api: ApiServer;
  readonly #scheduler: BindingScheduler;
  #client: Promise<KubeApiClient> | undefined;
  /** By UID of the claim. */
  readonly #written = new Map<string, Written>();
  #checks = 0;
  #isWriting = false;

  constructor(
    machine: Machine,
    history: History,
    { api, scheduler }: { api: ApiServer; scheduler: BindingScheduler },
  ) {
    this.#machine = machine;
    this.#history = history;
    this.#api = api;
    this.#scheduler = scheduler;
  }

  /** Writes to one allocated claim, once the write before is done. */
  async write(): Promise<void> {
    if (this.#isWriting) return;
    this.#isWriting = true;
    await this.#check();
    this.#isWriting = false;
  }

  async #check(): Promise<void> {
    const { allocated } = this.#scheduler;
    if (allocated.length === 0) return;
    const { claim, allocation } = this.#machine.pick(allocated);
    const results = statusOf(claim).allocation?.devices.results ?? [];
    if (results.length === 0) return;
    const { driver, pool, device } = this.#machine.pick(results);
    const entry: DeviceEntry = { driver, pool, device, data: { checked: ++this.#checks } };
    const { name = "", namespace = "", uid } = claim.metadata;
    this.#client ??= otherClient(this.#api, "checker");
    // Another check of this claim takes the place of this entry.
    this.#written.delete(allocation.uid);
    try {
      const body = { metadata: { name, namespace, uid: uid! }, status: { devices: [entry] } };
      await (await this.#client).apply(CLAIM, body, { subresource: "status", fieldManager: "checker" });
    } catch {
      return;
    }
    this.#history.note("another client", `checks ${device} of ${name}: ${this.#checks}`);
    this.#written.set(allocation.uid, { allocation, entry });
  }

  /** Returns what it has written and is no longer there, although the claim is still allocated. */
  changed(): string | undefined {
    for (const [uid, { allocation, entry }] of this.#written) {
      const claim: KubeObject | undefined = Number.isFinite(allocation.endedAt)
        ? undefined
        : this.#api.store.list(CLAIMS).find(({ metadata }) => metadata.uid === uid);
      const status = claim && statusOf(claim);
      if (status?.allocation?.allocationTimestamp !== allocation.allocatedAt) {
        this.#written.delete(uid);
        continue;
      }
      const found = status.devices?.find((each) => sameDevice(each, entry));
      if (found?.data?.checked !== entry.data?.checked && !this.#isReplaced(claim?.metadata.name, entry))
        return `${claim?.metadata.name}: ${entry.device} has ${JSON.stringify(found?.data)}, not ${JSON.stringify(entry.data)}`;
    }
    return undefined;
  }

  // A request of its own that it had given up may arrive later, and takes the place of the entry.
  #isReplaced(name: string | undefined, entry: DeviceEntry): boolean {
    const path = `/resourceclaims/${name}/status`;
    const last = this.#history.writes.findLast(
      ({ client, path: written }) => client === "other" && written.endsWith(path),
    );
    const { status } = (last?.body ?? {}) as { status?: { devices?: DeviceEntry[] } };
    return status?.devices?.[0]?.data?.checked !== entry.data?.checked;
  }
}
