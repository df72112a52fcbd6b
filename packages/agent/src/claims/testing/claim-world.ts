import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  DeviceHealthReportDefinition,
  type DeviceHealthReportServiceImplementation,
  DevicePreparationDefinition,
  type DevicePreparationServiceImplementation,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import type { KubeObject } from "@nodekeeper/core/kube";
import { type Clock, NodekeeperError, silentLogger, systemClock } from "@nodekeeper/core/lib";
import { createServer } from "nice-grpc";
import type { PodCacheEntry } from "../../lifecycle/index.ts";
import type { ContainerState } from "../../runtime/index.ts";
import { ClaimStore, StateDatabase } from "../../state/index.ts";
import type { ClaimReference } from "../claim-reader.ts";
import { ClaimRecords } from "../claim-records.ts";
import type { PodReader } from "../context.ts";
import type { PreparedDevice } from "../recorded-devices.ts";

export const DRIVER = "gpu.example.com";
export const NODE = "worker-1";

/** A temporary directory, a state database and the API server's claims for one test. */
export class ClaimWorld implements Disposable {
  readonly directory = mkdtempSync(join(tmpdir(), "nkcw-"));
  readonly #claims = new Map<string, KubeObject>();
  readonly database = StateDatabase.open({
    directory: join(this.directory, "state"),
    clock: systemClock,
    log: silentLogger,
  });
  readonly store = new ClaimStore(this.database);
  readonly reader = {
    read: async ({ name, uid }: ClaimReference): Promise<KubeObject> => {
      const found = this.#claims.get(name);
      if (found?.metadata.uid === uid) return found;
      throw new NodekeeperError("notFound", `no ResourceClaim ${name}`);
    },
  };

  /** Container states in the runtime, by UID of the pod. */
  readonly containers = new Map<string, ContainerState>();
  /** Sandbox states in the runtime, by UID of the pod. */
  readonly sandboxes = new Map<string, ContainerState>();
  /** The agent's access to the container runtime. */
  readonly pods: PodReader = {
    readNow: async (uid) => podEntry(uid, this.containers.get(uid), this.sandboxes.get(uid)),
  };

  /** The records as read by an agent in that boot of the machine. */
  records(boot = "boot-1", isProven = true): ClaimRecords {
    return new ClaimRecords(this.store, boot, systemClock, isProven);
  }

  /** Creates a claim that is allocated these devices of the driver and reserved for the pod "pod-of-<name>". */
  claim(name: string, ...devices: string[]): ClaimReference {
    const uid = `uid-of-${name}`;
    const results = devices.map((device) => ({ request: "req", driver: DRIVER, pool: NODE, device }));
    this.#claims.set(name, {
      metadata: { namespace: "default", name, uid },
      status: {
        allocation: { devices: { results } },
        reservedFor: [{ resource: "pods", name: `pod-of-${name}`, uid: `pod-of-${name}` }],
      },
    });
    return { namespace: "default", name, uid };
  }

  /** Reserves a claim for these pods, whose UIDs are their names, and for no others. */
  reserve({ name }: ClaimReference, ...pods: string[]): void {
    const { status } = this.#claims.get(name)!;
    (status as { reservedFor: unknown }).reservedFor = pods.map((pod) => ({
      resource: "pods",
      name: pod,
      uid: pod,
    }));
  }

  /** Deletes a claim from the API server. */
  deleteClaim({ name }: ClaimReference): void {
    this.#claims.delete(name);
  }

  [Symbol.dispose](): void {
    this.database.close();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** Returns a pod with one container and a sandbox in these states, or without them. */
export function podEntry(
  uid: string,
  state?: ContainerState,
  sandbox: ContainerState | undefined = state,
): PodCacheEntry {
  const container = {
    id: `main-of-${uid}`,
    name: "main",
    kind: "container" as const,
    attempt: 0,
    createdAt: 0n,
  };
  const ended = {
    image: "",
    imageRef: "",
    startedAt: 0n,
    finishedAt: 0n,
    exitCode: 0,
    reason: "",
    message: "",
  };
  const containers = state ? [{ ...container, ...ended, state }] : [];
  const sandboxes = sandbox
    ? [{ ...container, ...ended, id: `sandbox-of-${uid}`, kind: "sandbox" as const, state: sandbox, ips: [] }]
    : [];
  const status = { uid, name: uid, namespace: "default", ips: [], sandboxes, containers };
  return { status, error: undefined, modifiedAt: 0, observedAt: 0 };
}

/** A clock whose sleeps return at once and advance its time. */
export function hastyClock(): Clock {
  let slept = 0;
  return {
    ...systemClock,
    monotonic: () => systemClock.monotonic() + slept,
    sleep: async (ms, signal) => {
      signal?.throwIfAborted();
      slept += ms;
    },
  };
}

/** Returns a device as recorded. */
export function recordedDevice(device: string): PreparedDevice {
  const identity = { request: "req", pool: NODE, device, shareId: "" };
  return { ...identity, consumedCapacity: {}, adminAccess: false, configuration: [], cdiDeviceIds: [] };
}

/** Serves a driver's preparation and health on a socket. `stop` ends calls in progress. */
export async function serveDriver(
  path: string,
  services: {
    preparation?: Partial<DevicePreparationServiceImplementation>;
    health?: DeviceHealthReportServiceImplementation;
  },
): Promise<{ stop: () => void }> {
  const server = createServer();
  if (services.preparation)
    server.add(DevicePreparationDefinition, {
      prepareDevices: async () => ({}),
      unprepareDevices: async () => ({}),
      restoreClaims: async () => ({}),
      ...services.preparation,
    });
  if (services.health) server.add(DeviceHealthReportDefinition, services.health);
  await server.listen(`unix:${path}`);
  return {
    stop: () => {
      server.forceShutdown();
      rmSync(path, { force: true });
    },
  };
}
