import {
  type ClaimToPrepare,
  type ClaimToUnprepare,
  type DeviceHealth,
  type DevicePool,
  type Plugin,
  type PreparedDevice,
  serveDeviceDriver,
} from "@nodekeeper/sdk";

export interface ClaimDriverOptions {
  name: string;
  socketDir: string;
  /** Default: a socket in `socketDir`, on which it registers. */
  socketPath?: string;
  pool: DevicePool;
  /** The variables of a container for a device. Default: ACCELERATOR with its name. */
  env?: (device: ClaimToPrepare["devices"][number]) => Record<string, string>;
  /** Called with each call of the agent, which waits for them. */
  onPrepare?: (claim: ClaimToPrepare) => unknown;
  onUnprepare?: (claim: ClaimToUnprepare) => unknown;
}

/** A driver in the test's process: its devices are files that do what /dev/null does. It records what is prepared. */
export class ClaimDriver {
  /** Claims by UID that are prepared and not unprepared. */
  readonly prepared = new Map<string, ClaimToPrepare>();
  /** All that PrepareDevices was called with. */
  readonly calls: ClaimToPrepare[] = [];
  readonly #plugin: Plugin;
  readonly #devices: readonly string[];
  #unhealthy: readonly string[] = [];
  #changed = Promise.withResolvers<void>();

  constructor({ name, socketDir, socketPath, pool, env, onPrepare, onUnprepare }: ClaimDriverOptions) {
    this.#devices = (pool.devices ?? []).map((device) => device.name!);
    const health = () => this.#health();
    this.#plugin = serveDeviceDriver({
      name,
      socketDir,
      ...(socketPath ? { socketPath } : {}),
      async *devices() {
        yield [pool];
      },
      prepare: async (claim) => {
        await onPrepare?.(claim);
        this.calls.push(claim);
        this.prepared.set(claim.uid, claim);
        return claim.devices.map((each) => preparedOf(each, env?.(each) ?? { ACCELERATOR: each.device }));
      },
      unprepare: async (claim) => {
        await onUnprepare?.(claim);
        this.prepared.delete(claim.uid);
      },
      health,
    });
  }

  /** Reports devices as unhealthy, with a taint that repels pods; all others are healthy again. */
  setUnhealthy(...devices: readonly string[]): void {
    this.#unhealthy = devices;
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  /** Resolves when its socket is served. */
  get ready(): Promise<void> {
    return this.#plugin.ready;
  }

  stop(): Promise<void> {
    return this.#plugin.stop();
  }

  async *#health(): AsyncGenerator<DeviceHealth[]> {
    for (;;) {
      const changed = this.#changed.promise;
      yield this.#devices.map((device) => ({
        device,
        healthy: !this.#unhealthy.includes(device),
        taintEffect: "NoSchedule" as const,
      }));
      await changed;
    }
  }
}

function preparedOf(
  { request, pool, device, shareId }: ClaimToPrepare["devices"][number],
  env: Record<string, string>,
): PreparedDevice {
  const edits = { env, deviceNodes: [{ path: `/dev/${device}`, hostPath: "/dev/null" }] };
  return { request, pool, device, ...(shareId ? { shareId } : {}), edits };
}
