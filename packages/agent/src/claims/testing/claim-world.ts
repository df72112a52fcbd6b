import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  DeviceHealthReportDefinition,
  type DeviceHealthReportServiceImplementation,
  DevicePreparationDefinition,
  type DevicePreparationServiceImplementation,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha1/preparation.ts";
import type { KubeObject } from "@nodekeeper/core/kube";
import { NodekeeperError, silentLogger, systemClock } from "@nodekeeper/core/lib";
import { createServer } from "nice-grpc";
import { ClaimStore, StateDatabase } from "../../state/index.ts";
import type { ClaimReference } from "../claim-reader.ts";
import { ClaimRecords } from "../claim-records.ts";

export const DRIVER = "gpu.example.com";
export const NODE = "worker-1";

/** A folder, a state database and the API server's claims, for one test; disposed of at its end. */
export class ClaimWorld implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "nkcw-"));
  readonly #claims = new Map<string, KubeObject>();
  readonly #database = StateDatabase.open({
    directory: join(this.folder, "state"),
    clock: systemClock,
    log: silentLogger,
  });
  readonly store = new ClaimStore(this.#database);
  readonly reader = {
    read: async ({ name, uid }: ClaimReference): Promise<KubeObject> => {
      const found = this.#claims.get(name);
      if (found?.metadata.uid === uid) return found;
      throw new NodekeeperError("notFound", `no ResourceClaim ${name}`);
    },
  };

  /** The records as an agent in that boot of the machine reads them. */
  records(boot = "boot-1"): ClaimRecords {
    return new ClaimRecords(this.store, boot, systemClock);
  }

  /** A claim that is allocated these devices of the driver. */
  claim(name: string, ...devices: string[]): ClaimReference {
    const uid = `uid-of-${name}`;
    const results = devices.map((device) => ({ request: "req", driver: DRIVER, pool: NODE, device }));
    this.#claims.set(name, {
      metadata: { namespace: "default", name, uid },
      status: { allocation: { devices: { results } } },
    });
    return { namespace: "default", name, uid };
  }

  /** Deletes a claim from the API server. */
  deleteClaim({ name }: ClaimReference): void {
    this.#claims.delete(name);
  }

  [Symbol.dispose](): void {
    this.#database.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Serves what a driver has beside its devices on a socket; `stop` ends calls under way. */
export async function serveDriver(
  path: string,
  services: {
    preparation?: DevicePreparationServiceImplementation;
    health?: DeviceHealthReportServiceImplementation;
  },
): Promise<{ stop: () => void }> {
  const server = createServer();
  if (services.preparation) server.add(DevicePreparationDefinition, services.preparation);
  if (services.health) server.add(DeviceHealthReportDefinition, services.health);
  await server.listen(`unix:${path}`);
  return {
    stop: () => {
      server.forceShutdown();
      rmSync(path, { force: true });
    },
  };
}
