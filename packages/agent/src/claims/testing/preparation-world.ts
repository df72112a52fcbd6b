import { readdirSync } from "node:fs";
import { join } from "node:path";
import {
  type ContainerEdits,
  type DeepPartial,
  PrepareDevicesResponse,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { NodekeeperError, silentLogger } from "@nodekeeper/core/lib";
import type { Allocation } from "../allocation.ts";
import { CdiDirectory } from "../cdi-directory.ts";
import { ClaimAllocations } from "../claim-allocations.ts";
import type { ClaimReference } from "../claim-reader.ts";
import type { RecordedClaim } from "../claim-records.ts";
import type { PodReader } from "../context.ts";
import type { DeviceReader } from "../device-metadata.ts";
import { HostFiles } from "../host-files.ts";
import { Preparation } from "../preparation.ts";
import { ClaimWorld, hastyClock } from "./claim-world.ts";

export const never = new AbortController().signal;

/** A world with a driver that tests script, and agents that prepare its claims. */
export class PreparationWorld extends ClaimWorld {
  calls: string[] = [];
  isConnected = true;
  isPreparing = true;
  /** Whether another instance of the driver has registered. */
  isReplaced = false;
  isFailing = false;
  isLifecycleOn = true;
  deferred = 0;
  edits: DeepPartial<ContainerEdits> = { env: ["A=b"] };
  hostRoot = "/";
  /** Called during each call of the driver, and awaited. */
  duringCall: (call: string) => unknown = () => {};
  /** Called during each read of a pod from the runtime, and awaited. */
  duringRead: () => unknown = () => {};

  preparationIn(boot: string, reportedDevice?: DeviceReader, isProven = true) {
    const records = this.records(boot, isProven);
    const clock = hastyClock();
    const client = {
      prepare: async ({ name }: ClaimReference, { devices }: Allocation) => {
        this.calls.push(`prepare ${name}: ${devices.map(({ device }) => device)}`);
        await this.duringCall(this.calls.at(-1)!);
        return PrepareDevicesResponse.fromPartial({
          devices: devices.map((device) => ({ ...device, edits: this.edits })),
        });
      },
      unprepare: async ({ name }: ClaimReference, { devices }: Pick<RecordedClaim, "devices">) => {
        if (this.isFailing) throw new NodekeeperError("unavailable", "out of order");
        this.calls.push(`unprepare ${name}: ${devices.map(({ device }) => device)}`);
        await this.duringCall(this.calls.at(-1)!);
      },
    };
    const successor = { ...client };
    const reader: PodReader = {
      readNow: async (uid, signal) => {
        await this.duringRead();
        return await this.pods.readNow(uid, signal);
      },
    };
    const preparation = new Preparation({
      allocations: new ClaimAllocations(this.reader, records),
      records,
      directory: new CdiDirectory(join(this.directory, "cdi"), join(this.directory, "metadata")),
      host: new HostFiles({ root: this.hostRoot, allowed: ["/"] }),
      drivers: {
        get: () => ({
          connection: this.isConnected
            ? { uid: 0, client: this.isPreparing ? (this.isReplaced ? successor : client) : undefined }
            : undefined,
        }),
      },
      reportedDevice,
      problems: { preparationFailed: () => {} },
      queue: { add: () => void this.deferred++, addAfter: () => {} },
      pods: this.isLifecycleOn ? reader : undefined,
      clock,
      log: silentLogger,
    });
    return { records, preparation, clock };
  }

  files(): string[] {
    return readdirSync(join(this.directory, "cdi"));
  }
}
