import {
  type DeepPartial,
  DeviceStatus,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import type { KubeObject } from "@nodekeeper/core/kube";
import { childScope, FakeClock, silentLogger } from "@nodekeeper/core/lib";
import { ClaimStatusStore } from "../../state/index.ts";
import { ClaimProblems } from "../claim-problems.ts";
import type { ClaimReference } from "../claim-reader.ts";
import { type StatusOutcome, statusManager } from "../claim-status-api.ts";
import { ClaimStatuses } from "../claim-statuses.ts";
import type { StatusEntry } from "../device-status.ts";
import type { WantedEntries } from "../reported-statuses.ts";
import { ClaimWorld, DRIVER, NODE, recordedDevice } from "./claim-world.ts";

/** The API server's claims by name, with the entries of our field manager. */
class StatusServer {
  readonly entries = new Map<string, readonly StatusEntry[]>();
  readonly writes: string[] = [];
  fault: ((claim: ClaimReference) => void) | undefined;
  drops = false;

  /** Results of the allocation, by name of the claim. */
  readonly allocated = new Map<string, object[]>();
  /** When claims were allocated, in wall milliseconds, by name. Default: 1. */
  readonly allocatedAt = new Map<string, number>();
  /** Entries of other clients, by name of the claim. */
  readonly others = new Map<string, readonly StatusEntry[]>();

  async apply(claim: ClaimReference, wanted: WantedEntries): Promise<StatusOutcome> {
    const entries = typeof wanted === "function" ? wanted(this.claim(claim)) : wanted;
    if (!entries) return "kept";
    this.writes.push(claim.name);
    this.fault?.(claim);
    if (!this.drops) this.entries.set(claim.name, entries);
    if (entries.length === 0) return "removed";
    return this.drops ? "dropped" : "stored";
  }

  claim({ name, uid }: ClaimReference): KubeObject {
    const results = this.allocated.get(name);
    const allocationTimestamp = new Date(this.allocatedAt.get(name) ?? 1).toISOString();
    const allocation = results && { allocationTimestamp, devices: { results } };
    const entries = this.entries.get(name) ?? [];
    const keys = entries.map(({ driver, pool, device }) => `k:${JSON.stringify({ driver, pool, device })}`);
    const own = {
      manager: statusManager(DRIVER, NODE),
      operation: "Apply",
      subresource: "status",
      fieldsV1: { "f:status": { "f:devices": Object.fromEntries(keys.map((key) => [key, {}])) } },
    };
    return {
      metadata: { name, uid, managedFields: [own] },
      status: { allocation, devices: [...entries, ...(this.others.get(name) ?? [])] },
    };
  }

  devices(name: string): string[] {
    return (this.entries.get(name) ?? []).map(({ device }) => device);
  }
}

/**
 * Sets up a `ClaimWorld`, a simulated API server, and prepared claims with these names, each with the device nic-0. The
 * returned `start` runs an agent that writes the status of their devices.
 */
export async function setUp(names: readonly string[]) {
  const world = new ClaimWorld();
  const records = world.records();
  const server = new StatusServer();
  const clock = new FakeClock();
  const claims = names.map((name) => world.claim(name, "nic-0"));
  for (const claim of claims)
    await records.save(DRIVER, claim, {
      state: "prepared",
      devices: [recordedDevice("nic-0")],
      cdi: "",
      pods: [],
    });
  /** An agent with the state of those before it. */
  const start = () => {
    const store = new ClaimStatusStore(world.database);
    const problems = new ClaimProblems({ records, drivers: { setClaimProblems: () => {} } });
    const common = { nodeName: NODE, problems, records, store, api: server, clock, log: silentLogger };
    const statuses = new ClaimStatuses(common);
    const scope = childScope();
    const running = statuses.run(scope.signal);
    const stop = async () => {
      scope.abort();
      await running;
    };
    return { statuses, problems, stop, stored: () => store.claims().map(({ name }) => name) };
  };
  return { world, records, server, clock, claims, start };
}

/** Returns the status of a claim's device nic-0, as its driver reports it. */
export const entry = ({ uid }: ClaimReference, more: DeepPartial<DeviceStatus> = {}): DeviceStatus =>
  DeviceStatus.fromPartial({ claimUid: uid, device: "nic-0", ...more });
/** Lets everything happen that needs no time. */
export const settle = async () => {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
};
